import { describe, expect, it } from "vitest"
import { type Answer, speaking, thinks } from "./speaking.ts"

// Ollama's API: what is read, and what is written, whole and by lines.

const look = {
  type: "function",
  function: {
    name: "look",
    description: "Looks.",
    parameters: { type: "object", properties: { where: { type: "string" } } },
  },
}
const call = (where: string) => `<tool_call>\n{"name": "look", "arguments": {"where": "${where}"}}\n</tool_call>`
const user = { role: "user", content: "Go." }
type Endpoint = Awaited<ReturnType<typeof speaking>>

const url = (path: string) => `http://gigpo.invalid/api/${path}`
const headers = (apiKey: string) => ({ authorization: `Bearer ${apiKey}`, "content-type": "application/json" })
const post = ({ fetch, apiKey }: Endpoint, path: string, body: object) =>
  fetch(url(path), { method: "POST", headers: headers(apiKey), body: JSON.stringify({ model: "policy", ...body }) })

/** The object that lines make. */
async function joined(response: Response): Promise<Answer> {
  expect(response.headers.get("content-type")).toBe("application/x-ndjson")
  const lines: Answer[] = (await response.text())
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))
  expect(lines.map(({ done }) => done)).toEqual(lines.map((_, index) => index === lines.length - 1))
  const { message, response: text, ...last } = lines.at(-1)
  const add = (field: string) =>
    lines.map(({ message = {}, ...line }) => ({ ...line, ...message })[field] ?? "").join("")
  const thought = add("thinking")
  const thinking = thought === "" ? {} : { thinking: thought }
  if (!message) return { ...last, response: add("response"), ...thinking }
  const calls = lines.flatMap(({ message: { tool_calls = [] } }) => tool_calls)
  const called = calls.length > 0 && { tool_calls: calls }
  return { ...last, message: { role: "assistant", content: add("content"), ...thinking, ...called } }
}

const asks = [false, true].map((stream) => ({
  name: stream ? "streamed" : "whole",
  ask: async (endpoint: Endpoint, path: string, body: object): Promise<Answer> => {
    // A stream is what is given unless it is not wanted.
    const response = await post(endpoint, path, { ...(stream ? {} : { stream }), ...body })
    expect(response.status).toBe(200)
    return stream ? await joined(response) : await response.json()
  },
}))

describe.each(asks)("$name", ({ ask }) => {
  it("returns text, thoughts and calls, with the reason of the end and token counts", async () => {
    const said = `Hm.\n</think>\n\nLet me see.\n${call("left")}\n${call("right")}`
    const endpoint = await speaking([said], { template: thinks })
    const answer = await ask(endpoint, "chat", { messages: [user], tools: [look] })
    const called = (index: number, where: string) => ({
      id: expect.stringMatching(/^call_/),
      function: { index, name: "look", arguments: { where } },
    })
    expect(answer).toEqual({
      ...{ model: "policy", created_at: expect.stringMatching(/^\d{4}-.*Z$/), done: true, done_reason: "stop" },
      message: {
        ...{ role: "assistant", content: "Let me see.", thinking: "Hm." },
        tool_calls: [called(0, "left"), called(1, "right")],
      },
      ...{
        total_duration: expect.any(Number),
        load_duration: 0,
        prompt_eval_duration: 0,
        eval_duration: expect.any(Number),
      },
      prompt_eval_count: endpoint.policy.requests[0]!.prompt.length,
      eval_count: endpoint.policy.tokens(said).length,
    })
  })

  it("extends the conversation token by token, however results name their calls", async () => {
    for (const name of [({ id }: Answer) => ({ tool_call_id: id }), () => ({ tool_name: "look" }), () => ({})]) {
      const endpoint = await speaking([`${call("left")}\n${call("right")}`, "Found.", "Yes."])
      const messages: Answer[] = [user]
      for (const next of [
        (calls: Answer[]) => calls.map((one) => ({ role: "tool", content: "a key", ...name(one) })),
        () => [{ role: "user", content: "Sure?" }],
      ]) {
        const { message } = await ask(endpoint, "chat", { messages, tools: [look] })
        messages.push(message, ...next(message.tool_calls))
      }
      await ask(endpoint, "chat", { messages, tools: [look] })
      const [first, second, third] = endpoint.policy.requests.map(({ prompt }) => prompt)
      expect([...second!.subarray(0, first!.length)]).toEqual([...first!])
      expect([...third!.subarray(0, second!.length)]).toEqual([...second!])
      expect(endpoint.errors).toEqual([])
    }
  })

  it("generates from a prompt, under a template or without one", async () => {
    const endpoint = await speaking(["One two three.", " <think>two</think> <tool_call>"])
    expect((await ask(endpoint, "generate", { prompt: "Count.", system: "Be brief." })).response).toBe("One two three.")
    const raw = await ask(endpoint, "generate", { prompt: "<|im_start|>one", raw: true })
    expect(raw.response).toBe(" <think>two</think> <tool_call>")
    const [own, written] = endpoint.policy.requests.map(({ prompt }) => endpoint.tokenizer.decode(prompt))
    expect(own).toBe(
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nCount.<|im_end|>\n<|im_start|>assistant\n",
    )
    expect(written).toBe("<|im_start|>one")
  })

  it("keeps to options, formats and log-probabilities", async () => {
    const endpoint = await speaking(['{"a": 1}'], { temperature: { value: 1, fixed: false } })
    const schema = {
      type: "object",
      properties: { a: { type: "integer" } },
      required: ["a"],
      additionalProperties: false,
    }
    for (const format of ["json", schema])
      expect((await ask(endpoint, "chat", { messages: [user], format })).message.content).toBe('{"a": 1}')
    const { requests } = endpoint.policy
    expect(endpoint.policy.allowed('{"b": 1}')).toEqual([true, false])
    const options = {
      temperature: 0.5,
      num_predict: 3,
      seed: 7,
      stop: ["x"],
      num_ctx: 4096,
      top_p: 1,
      repeat_penalty: 1,
    }
    const { done_reason, eval_count, logprobs } = await ask(endpoint, "chat", {
      messages: [user],
      options,
      keep_alive: "5m",
      logprobs: true,
      top_logprobs: 2,
    })
    expect([done_reason, eval_count, logprobs.length, logprobs[0].top_logprobs.length]).toEqual(["length", 3, 3, 2])
    expect(requests[2]).toMatchObject({ temperature: 0.5, maxTokens: 3 })
    await ask(endpoint, "chat", { messages: [user], options: { num_predict: -1 } })
    expect(requests[3]!.maxTokens).toBe(4096 - requests[3]!.prompt.length)
  })
})

it("describes its models", async () => {
  const endpoint = await speaking(["Yes."], { template: (template) => `${template}{# <think> #}` })
  const { fetch, apiKey } = endpoint
  const get = async (path: string) => await (await fetch(url(path), { headers: headers(apiKey) })).json()
  expect(await get("tags")).toMatchObject({ models: [{ name: "policy", model: "policy" }] })
  expect(await get("version")).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+$/) })
  const shown: Answer = await (await post(endpoint, "show", {})).json()
  expect(shown.capabilities).toEqual(["completion", "tools", "thinking"])
  expect(shown.model_info[`${shown.model_info["general.architecture"]}.context_length`]).toBe(4096)
  expect((await post(endpoint, "chat", { model: "policy:latest", messages: [user] })).status).toBe(200)
})

const tool = (more: object) => ({ messages: [user, { role: "assistant", content: "", tool_calls: [{ function: { name: "look", arguments: {} } }] }, { role: "tool", content: "x", ...more }] }) // biome-ignore format: one line

it.each<[string, string, object]>([
  ["messages", "chat", { messages: [] }],
  ["messages[0].role", "chat", { messages: [{ role: "developer", content: "x" }] }],
  ["messages[0].images[0]", "chat", { messages: [{ ...user, images: ["aGk="] }] }],
  ["messages[1]", "chat", { messages: [user, { role: "tool", content: "x" }] }],
  [
    "messages[1].tool_calls[0].id",
    "chat",
    { messages: [user, { role: "assistant", content: "", tool_calls: [{ function: { name: "f" } }] }] },
  ],
  [
    "messages[1].tool_calls[0].function.arguments",
    "chat",
    {
      messages: [user, { role: "assistant", content: "", tool_calls: [{ function: { name: "f", arguments: "{}" } }] }],
    },
  ],
  ["messages[2].tool_call_id", "chat", tool({ tool_call_id: "other" })],
  ["format", "chat", { messages: [user], format: "xml" }],
  ["options.top_p", "chat", { messages: [user], options: { top_p: 0.9 } }],
  ["options.num_predict", "chat", { messages: [user], options: { num_predict: 0 } }],
  ["options.wisdom", "chat", { messages: [user], options: { wisdom: 1 } }],
  ["think", "chat", { messages: [user], think: "hard" }],
  ["think", "chat", { messages: [user], think: "high" }],
  ["top_logprobs", "chat", { messages: [user], top_logprobs: 2 }],
  ["wisdom", "chat", { messages: [user], wisdom: 1 }],
  ["prompt", "generate", {}],
  ["images[0]", "generate", { prompt: "x", images: ["aGk="] }],
  ["suffix", "generate", { prompt: "x", suffix: "y" }],
  ["context", "generate", { prompt: "x", context: [1, 2] }],
  ["system", "generate", { prompt: "x", system: "y", raw: true }],
])("rejects %s in the format of Ollama's API (%s: %j)", async (field, path, body) => {
  const endpoint = await speaking(["Yes."])
  const response = await post(endpoint, path, body)
  expect([response.status, await response.json()]).toEqual([400, { error: expect.stringContaining(field) }])
  expect([endpoint.policy.requests.length, endpoint.errors.length]).toEqual([0, 0])
})

it("reports an unknown model, and an error in the middle of a stream", async () => {
  const endpoint = await speaking(["One two."])
  const unknown = await post(endpoint, "chat", { model: "llama3.2", messages: [user] })
  expect([unknown.status, await unknown.json()]).toEqual([404, { error: expect.stringContaining("llama3.2") }])
  const { policy } = endpoint
  const sample = policy.sample.bind(policy)
  policy.sample = async (request) => {
    await sample(request)
    throw new Error("a fault")
  }
  const lines = (await (await post(endpoint, "chat", { messages: [user] })).text()).trimEnd().split("\n")
  expect(JSON.parse(lines.at(-1)!)).toEqual({ error: expect.stringContaining("Internal error") })
})
