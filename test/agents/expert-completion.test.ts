import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { completionTokens, type ExpertCompletion } from "../../src/agents/expert-completion.ts"
import type { Call, CallMessage } from "../../src/chat/call.ts"
import { readTools } from "../../src/chat/tools/read-tools.ts"
import { parseJson } from "../../src/json/text.ts"
import { atOnce } from "../../src/util/pace.ts"
import { thinks } from "../endpoint/speaking.ts"
import { edit, open, tokenizerFolder } from "../tokenizer/scratch.ts"

/** As Llama 3's template: one call a reply, with parameters. */
const llama = [
  "{% if tools %}<|im_start|>system\n{% for tool in tools %}{{ tool | tojson }}{% endfor %}<|im_end|>\n{% endif %}",
  "{% for message in messages %}<|im_start|>{{ message['role'] }}\n",
  "{% if message['tool_calls'] %}{% if message['tool_calls'] | length > 1 %}",
  "{{ raise_exception('This model only supports single tool-calls at once!') }}{% endif %}",
  "{% set call = message['tool_calls'][0]['function'] %}{{ '{\"name\": \"' + call['name'] + '\", \"parameters\": ' }}",
  "{{ call['arguments'] | tojson }}{{ '}' }}{% else %}{{ message['content'] }}{% endif %}<|im_end|>\n{% endfor %}",
  "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
].join("")
const plain = "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}" // biome-ignore format: one line

const parameters = {
  type: "object",
  properties: { sql: { type: "string" }, limit: { type: "integer" }, kind: { enum: ["a", "b"] } },
  required: ["sql"],
  additionalProperties: false,
}
const tools = atOnce(
  readTools([
    { type: "function", function: { name: "query", parameters } },
    { type: "function", function: { name: "free" } },
  ]),
)
const user: CallMessage = { role: "user", content: "How many?" }
const asked: Call = {
  ...{ model: "policy", messages: [user], tools, toolChoice: "auto", parallel: true, format: { kind: "text" } },
  ...{ maxTokens: undefined, stop: [], count: 1, seed: undefined, temperature: undefined },
  ...{ logProbs: false, topLogProbs: 0, stream: false },
}

/** The text of a reply, up to and with the token that ends it. */
async function written(
  completion: ExpertCompletion,
  template?: (template: string) => string,
  call: Partial<Call> = {},
) {
  const folder = await tokenizerFolder()
  if (template)
    edit(join(folder, "tokenizer_config.json"), (config) => {
      config.chat_template = template(config.chat_template)
    })
  const tokenizer = await open(folder)
  return tokenizer.decode(await completionTokens(tokenizer, { ...asked, ...call }, completion), { skipSpecial: false })
}

const query = (given: string | object) => ({ function: { name: "query", arguments: given } })

describe("messages of an expert", () => {
  it("is written with the model's own chat template", async () => {
    const calls = { tool_calls: [query({ sql: "SELECT 1", limit: 2 })] }
    const body = '{"sql": "SELECT 1", "limit": 2}'
    const qwen = `<tool_call>\n{"name": "query", "arguments": ${body}}\n</tool_call><|im_end|>`
    expect(await written(calls)).toBe(qwen)
    expect(await written(calls, () => llama)).toBe(`{"name": "query", "parameters": ${body}}<|im_end|>`)
    expect(await written({ tool_calls: [query(body)] })).toBe(qwen)
    expect(await written({ content: "Let me see.", ...calls })).toContain("Let me see.")
    for (const template of [undefined, () => llama, () => plain]) {
      expect(await written({ content: "Two." }, template, { tools: [] })).toBe("Two.<|im_end|>")
      expect(await written("Two.", template)).toBe("Two.<|im_end|>")
    }
    const both = { tool_calls: [query({ sql: "1" }), query({ sql: "2" })] }
    expect((await written(both)).match(/<tool_call>/g)).toHaveLength(2)
  })

  it("continues a conversation, within the thought that the prompt opens", async () => {
    const said: CallMessage = {
      role: "assistant",
      content: "",
      toolCalls: [{ id: "c", name: "query", arguments: '{"sql": "1"}' }],
    }
    const messages: CallMessage[] = [user, said, { role: "tool", content: "42", toolCallId: "c" }]
    expect(await written({ content: "42" }, undefined, { messages })).toBe("42<|im_end|>")
    expect(await written({ content: "42", reasoning_content: "Hm." }, thinks, { messages })).toBe(
      "Hm.\n</think>\n\n42<|im_end|>",
    )
  })

  it("keeps its arguments as they are written", async () => {
    const given = '{"id": 2512292042121000001, "x": 20.0, "10": 1, "2": 1e-07}'
    const free = (value: string | object) => ({ tool_calls: [{ function: { name: "free", arguments: value } }] })
    const values = /"id": 2512292042121000001, "x": 20\.0, "10": 1, "2": 1e-07/
    for (const value of [given, parseJson(given) as object]) expect(await written(free(value))).toMatch(values)
  })

  it("can contain the same parts as messages of clients", async () => {
    const message = {
      role: "assistant",
      content: "Two.",
      refusal: null,
      annotations: [],
      audio: null,
      tool_calls: null,
    }
    expect(await written(message as ExpertCompletion)).toBe("Two.<|im_end|>")
  })

  it.each<[string, unknown, RegExp, Partial<Call>?]>([
    ["no reply", undefined, /must be a string or a message, not undefined/],
    ["a list", [{ content: "x" }], /must be a string or a message/],
    ["a number", 7, /must be a string or a message, not number/],
    ["another role", { role: "user", content: "x" }, /has the role "user"/],
    ["an unknown member", { content: "x", toolCalls: [] as unknown[] | object, tools: [1] }, /tools/],
    ["a misspelt member", { toolCalls: [query({ sql: "1" })] }, /toolCalls/],
    ["nothing", {}, /content is missing/],
    ["a number for a text", { content: 7 }, /content must be/],
    ["a call without a function", { tool_calls: [{ name: "query" }] }, /tool_calls\[0\]\.function must be an object/],
    ["a call without a name", { tool_calls: [{ function: { arguments: {} } }] }, /function\.name is missing/],
    ["a call without arguments", { tool_calls: [{ function: { name: "query" } }] }, /arguments is missing/],
    ["arguments that are a list", { tool_calls: [query("[1]")] }, /arguments must be the JSON of an object/],
    ["arguments that are cut", { tool_calls: [query('{"sql": "1"')] }, /arguments must be the JSON of an object/],
    [
      "an unknown tool",
      { tool_calls: [{ function: { name: "drop", arguments: {} } }] },
      /calls the tool "drop".*offers query, free/,
    ],
    ["a tool where none is offered", { tool_calls: [query({ sql: "1" })] }, /offers none/, { tools: [] }],
    ["a tool where none may be called", { tool_calls: [query({ sql: "1" })] }, /offers none/, { toolChoice: "none" }],
    ["an argument too few", { tool_calls: [query({})] }, /arguments\.sql is missing/],
    [
      "an argument too many",
      { tool_calls: [query({ sql: "1", of: 1 })] },
      /arguments\.of is not one of sql, limit, kind/,
    ],
    ["an argument of another type", { tool_calls: [query({ sql: 1 })] }, /arguments\.sql must be of type string/],
    ["a fraction", { tool_calls: [query({ sql: "1", limit: 1.5 })] }, /arguments\.limit must be of type integer/],
    ["none of the values", { tool_calls: [query({ sql: "1", kind: "c" })] }, /arguments\.kind must be "a" or "b"/],
  ])("is rejected by name: %s", async (_, completion, message, call) => {
    await expect(written(completion as ExpertCompletion, undefined, call)).rejects.toThrow(message)
    await expect(written(completion as ExpertCompletion, undefined, call)).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
    })
  })

  it("is rejected where the chat template does not write it", async () => {
    const calls = { tool_calls: [query({ sql: "1" })] }
    await expect(written(calls, () => plain)).rejects.toThrow(/does not render tools|calls of tools/)
    const two = { tool_calls: [query({ sql: "1" }), query({ sql: "2" })] }
    await expect(written(two, () => llama)).rejects.toThrow("single tool-calls")
    await expect(written({ content: "Both.", ...calls }, () => llama)).rejects.toThrow(
      /parsed differently|does not appear/,
    )
  })
})
