import { expect, it, onTestFinished, vi } from "vitest"
import { FieldReader } from "../../src/chat/fields.ts"
import { Random } from "../../src/util/random.ts"
import { type Answer, speaking } from "../endpoint/speaking.ts"

// Bodies that are wrong in every field that the readers read: which those are, the readers themselves say.

const parameters = {
  type: "object",
  properties: { a: { type: "integer" } },
  required: ["a"],
  additionalProperties: false,
}
const f = { name: "f", description: "F.", parameters, strict: true }
const format = { name: "x", description: "X.", strict: true, schema: { type: "object" } }

/** A body of each endpoint that has all there is. */
const full: Readonly<Record<string, object>> = {
  "chat/completions": {
    model: "policy",
    messages: [
      { role: "system", content: "Be." },
      { role: "developer", content: [{ type: "text", text: "Be." }] },
      { role: "user", content: [{ type: "text", text: "Go." }], name: "u" },
      {
        ...{ role: "assistant", content: null, refusal: "No.", reasoning_content: "Hm.", reasoning: null },
        tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: '{"a":1}' } }],
      },
      { role: "tool", tool_call_id: "c", content: "42" },
    ],
    tools: [{ type: "function", function: f }],
    ...{ tool_choice: { type: "function", function: { name: "f" } }, parallel_tool_calls: true },
    response_format: { type: "json_schema", json_schema: format },
    ...{
      max_tokens: 5,
      max_completion_tokens: 5,
      stop: ["s"],
      n: 2,
      seed: 1,
      temperature: 1,
      top_p: 1,
      top_k: -1,
      min_p: 0,
    },
    ...{ frequency_penalty: 0, presence_penalty: 0, repetition_penalty: 1, logit_bias: {} },
    ...{
      logprobs: true,
      top_logprobs: 1,
      stream: true,
      stream_options: { include_usage: true },
      return_token_ids: true,
    },
    ...{ modalities: ["text"], functions: [], user: "me", metadata: {} },
    ...{
      reasoning_effort: "none",
      reasoning: { effort: "none", enabled: false, exclude: false },
      usage: { include: true },
    },
  },
  completions: {
    ...{ model: "policy", prompt: "Go.", response_format: { type: "json_schema", json_schema: format } },
    ...{ max_tokens: 5, stop: ["s"], n: 2, best_of: 2, seed: 1, temperature: 1, top_p: 1, logprobs: 1, echo: false },
    ...{ stream: true, stream_options: { include_usage: true }, return_token_ids: true, suffix: "", user: "me" },
  },
  messages: {
    ...{ model: "policy", max_tokens: 5, system: [{ type: "text", text: "Be." }] },
    messages: [
      { role: "user", content: [{ type: "text", text: "Go." }] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm.", signature: "s" },
          { type: "text", text: "Yes." },
          { type: "tool_use", id: "c", name: "f", input: { a: 1 } },
        ],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "c", content: [{ type: "text", text: "42" }], is_error: false }],
      },
    ],
    tools: [{ type: "custom", name: "f", description: "F.", input_schema: parameters, strict: true }],
    tool_choice: { type: "tool", name: "f", disable_parallel_tool_use: true },
    output_config: { format: { type: "json_schema", schema: format.schema } },
    ...{
      stop_sequences: ["s"],
      temperature: 1,
      top_p: 1,
      stream: true,
      thinking: { type: "enabled", budget_tokens: 9 },
    },
  },
  "../api/chat": {
    model: "policy",
    messages: [
      { role: "system", content: "Be." },
      { role: "user", content: "Go." },
      {
        ...{ role: "assistant", content: "", thinking: "Hm." },
        tool_calls: [{ id: "c", function: { name: "f", arguments: { a: 1 } } }],
      },
      { role: "tool", content: "42", tool_name: "f", tool_call_id: "c" },
    ],
    tools: [{ type: "function", function: f }],
    ...{ format: format.schema, stream: true, think: false, logprobs: true, top_logprobs: 1, keep_alive: "5m" },
    options: { temperature: 1, seed: 1, num_predict: 5, stop: ["s"], top_k: -1, repeat_penalty: 1, num_ctx: 9 },
  },
  "../api/generate": {
    ...{
      model: "policy",
      prompt: "Go.",
      system: "Be.",
      raw: false,
      images: [],
      suffix: "",
      format: "json",
      stream: true,
    },
    options: { temperature: 1, seed: 1, num_predict: 5 },
  },
  responses: {
    ...{ model: "policy", instructions: "Be." },
    input: [
      { role: "user", content: [{ type: "input_text", text: "Go." }] },
      { type: "reasoning", id: "rs", summary: [], content: [{ type: "reasoning_text", text: "Hm." }] },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Yes." }] },
      { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: "42" },
    ],
    tools: [{ type: "function", ...f }],
    ...{
      tool_choice: { type: "function", name: "f" },
      parallel_tool_calls: false,
      text: { format: { type: "json_schema", ...format } },
    },
    ...{ max_output_tokens: 5, temperature: 1, top_p: 1, top_logprobs: 1, include: ["message.output_text.logprobs"] },
    ...{
      stream: true,
      stream_options: {},
      reasoning: { summary: "auto" },
      truncation: "disabled",
      background: false,
      metadata: {},
    },
  },
}

const wrong: readonly unknown[] = [
  ...[
    0,
    -1,
    1.5,
    1e308,
    2 ** 53,
    "",
    "x",
    "\u0000\ud800",
    "__proto__",
    true,
    [],
    [[]],
    [null],
    [{}],
    {},
    { a: { b: [] } },
  ],
  JSON.parse('{"__proto__": {"role": "user"}, "constructor": 1, "toString": 1, "length": -1}'),
]

type Path = readonly (string | number)[]

function stepsOf(name: string): Path {
  return [...name.matchAll(/([^.[\]]+)/g)].map(([step]) => (/^\d+$/.test(step) ? Number(step) : step))
}

/** The body with something else in one place. */
function changed(body: unknown, [step, ...rest]: Path, value: unknown): unknown {
  if (step === undefined) return value
  const copy = Array.isArray(body) ? [...body] : { ...(body as object) }
  Object.assign(copy, { [step]: changed((body as Record<string | number, unknown>)[step], rest, value) })
  return copy
}

/** The fields that reading a body reads, each with the methods by which it is read. */
async function fieldsOf(read: () => Promise<unknown>): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const found = new Map<string, Set<string>>()
  for (const method of ["any", "string", "required", "boolean", "whole", "number", "oneOf", "list"] as const) {
    const original = FieldReader.prototype[method] as (...given: unknown[]) => unknown
    const spy = vi.spyOn(FieldReader.prototype, method)
    spy.mockImplementation(function (this: FieldReader, field: string, ...more: unknown[]) {
      const name = this.name(field)
      found.set(name, (found.get(name) ?? new Set()).add(method))
      return original.call(this, field, ...more) as never
    })
    onTestFinished(() => spy.mockRestore())
  }
  await read()
  vi.restoreAllMocks()
  return found
}

/** The error of a response; APIs without its field name that in the message. */
function errorOf(text: string): { readonly param: string | undefined } {
  const { error } = JSON.parse(text) as Answer
  const message = error.message ?? error
  return { param: error.param ?? /^([\w.[\]]+) /.exec(message)?.[1] }
}

it.each(Object.keys(full))(
  "%s: what is wrong in one field is rejected by its name, and other requests are answered",
  async (path) => {
    const { post, errors } = await speaking(["yes"])
    const body = full[path]!
    const fields = await fieldsOf(async () => expect((await post(path, body)).status).toBe(200))
    expect(fields.size).toBeGreaterThan(path === "../api/generate" ? 20 : 30)
    for (const [name, methods] of fields) {
      const steps = stepsOf(name)
      for (const value of wrong) {
        const response = await post(path, changed(body, steps, value) as object)
        const text = await response.text()
        if (response.status === 200) continue
        const error = errorOf(text)
        const told = `${name} = ${JSON.stringify(value)}: ${text}`
        expect([400, 404], told).toContain(response.status)
        // What is read by its type alone is to blame itself; elsewhere another field may be wrong now.
        expect(error.param, told).toEqual(expect.any(String))
        if (typeof value === "object" && methods.size > 1 && !Array.isArray(value)) expect(error.param, told).toBe(name)
      }
      const typed = [...methods].some((method) => method !== "any")
      if (typed) expect((await post(path, changed(body, steps, {}) as object)).status, name).toBe(400)
      const parent = steps.slice(0, -1)
      const strange = await post(path, changed(body, [...parent, "wisdom"], 1) as object)
      if (parent.length === 0) expect(errorOf(await strange.text()).param).toBe("wisdom")
      else await strange.text()
    }
    expect(errors).toEqual([])
    const whole = { ...body, stream: false, ...("stream_options" in body && { stream_options: null }) }
    expect((await post(path, whole)).status).toBe(200)
  },
)

it("unknown roles, types and parts are rejected by name", async () => {
  const { post } = await speaking(["yes"])
  for (const role of ["root", "System", "", "function", "constructor", 7, null]) {
    const chat = await post("chat/completions", { messages: [{ role, content: "x" }] })
    expect([chat.status, ((await chat.json()) as Answer).error.param]).toEqual([400, "messages[0].role"])
    const responses = await post("responses", { input: [{ role, content: "x" }] })
    expect([responses.status, ((await responses.json()) as Answer).error.param]).toEqual([400, "input[0].role"])
  }
  for (const type of ["input_audio", "file", "", 1]) {
    const parts = [{ type, text: "x", image_url: { url: "http://127.0.0.1/" } }]
    const response = await post("chat/completions", { messages: [{ role: "user", content: parts }] })
    expect(((await response.json()) as Answer).error.param).toBe("messages[0].content[0].type")
  }
})

it("arguments that nest without end harm nobody, whoever wrote them", async () => {
  for (const depth of [1000, 10_000, 100_000]) {
    const deep = `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`
    const { post, errors } = await speaking([`<tool_call>\n{"name": "f", "arguments": ${deep}}\n</tool_call>`], {
      maxPositions: 1e6,
      at: 0,
    })
    const calls = [{ id: "c", type: "function", function: { name: "f", arguments: deep } }]
    const messages = [
      { role: "user", content: "Go." },
      { role: "assistant", content: null, tool_calls: calls },
      { role: "tool", tool_call_id: "c", content: "42" },
    ]
    expect([200, 400]).toContain((await post("chat/completions", { messages })).status)
    const tools = [{ type: "function", function: { name: "f" } }]
    const said = await post("chat/completions", { messages: messages.slice(0, 1), tools, max_tokens: 5e5 })
    expect(said.status).toBe(200)
    expect(errors).toEqual([])
  }
})

it("bytes that are no request are rejected, whatever they are", async () => {
  const { fetch, baseURL, apiKey, errors, post } = await speaking(["yes"])
  const random = new Random(7)
  const valid = Buffer.from(JSON.stringify(full["chat/completions"]))
  const bodies: (string | Uint8Array<ArrayBuffer>)[] = ["", " ", "null", "1", '"x"', "[]", "{", '{"model":', "\ufeff{}", "NaN", '{"model": "policy"'] // biome-ignore format: one line
  bodies.push(
    "[".repeat(1e6),
    '{"a":'.repeat(1e5),
    `{"model":"policy","messages":${"[".repeat(199)}${"]".repeat(199)}}`,
  )
  const deep = `{"a":${"[".repeat(20_000)}${"]".repeat(20_000)}}`
  bodies.push(
    `{"model":"policy","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":${deep}}}]}`,
  )
  bodies.push(`{"messages": "${"\\".repeat(1e5)}`, new Uint8Array(1000).fill(0xff))
  for (let i = 0; i < 200; i++) {
    const bytes = new Uint8Array(valid)
    for (let flips = 0; flips < 4; flips++) bytes[random.derive("at", i, flips).below(bytes.length)] = random.derive("to", i, flips).below(256) // biome-ignore format: one line
    bodies.push(
      bytes.subarray(
        0,
        i % 3 === 0 ? random.derive("cut", i).below(bytes.length) : bytes.length,
      ) as Uint8Array<ArrayBuffer>,
    )
  }
  for (const path of ["chat/completions", "responses"])
    for (const body of bodies) {
      const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" }
      const response = await fetch(`${baseURL}/${path}`, { method: "POST", headers, body })
      expect([200, 400, 404]).toContain(response.status)
      await response.text()
    }
  expect(errors).toEqual([])
  expect((await post("responses", { input: "Hi" })).status).toBe(200)
})
