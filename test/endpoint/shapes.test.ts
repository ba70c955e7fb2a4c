import { expect, it } from "vitest"
import { tellings } from "../../src/endpoint/posted.ts"
import { type Answer, speaking } from "./speaking.ts"

// What clients send, field by field: what cannot be meant is rejected by the name of the field, and never reaches a prompt.

type Body = Readonly<Record<string, unknown>>

const user = { role: "user", content: "Go." }
const f = { type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } }
const called = (given: unknown, more: object = {}) => ({
  role: "assistant",
  content: null,
  tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: given }, ...more }],
})
const result = { role: "tool", tool_call_id: "c", content: "42" }
const history = (given: unknown, more?: object): Body => ({ messages: [user, called(given, more), result] })
const items = (given: unknown): Body => ({
  input: [
    { role: "user", content: "Go." },
    { type: "function_call", call_id: "c", name: "f", arguments: given },
    { type: "function_call_output", call_id: "c", output: "42" },
  ],
})

const objects = [
  "{}",
  "",
  ' {"a": 1}\n',
  '{"id": 2512292042121000001, "x": 20.0, "10": 1, "2": 1e-07}',
  '{"a":1,"a":2}',
  '{"":"\\ud83d\\ude00"}',
]
const noObjects: readonly unknown[] = [
  ...[" ", "\n", "null", "[1]", "[]", '"{}"', '"{\\"a\\": 1}"', "1", "true", '{"a": 1', '{"a": 1}}', "{'a': 1}", "NaN"],
  ...['{"a": NaN}', '{"a": Infinity}', '{"a": 1,}', "{} {}", "\ufeff{}", '{"a": "\\ud800"}', '{"\\udc00": 1}', "x"],
  ...[null, {}, { a: 1 }, [], 7, true, `${'{"a":'.repeat(300)}1${"}".repeat(300)}`],
]

it("arguments of calls are the JSON of an object, or nothing", async () => {
  const { post, errors } = await speaking(["yes"])
  const at = "messages[1].tool_calls[0].function.arguments"
  for (const given of objects) {
    expect((await post("chat/completions", history(given))).status, given).toBe(200)
    expect((await post("responses", items(given))).status, given).toBe(200)
  }
  for (const given of noObjects)
    for (const [path, body, param] of [
      ["chat/completions", history(given), at],
      ["responses", items(given), "input[1].arguments"],
    ] as const) {
      const response = await post(path, body)
      const { error }: Answer = await response.json()
      expect([response.status, error.param], `${JSON.stringify(given)}`).toEqual([400, param])
      expect(error.message).toContain(param)
    }
  expect((await post("chat/completions", history(undefined))).status).toBe(400)
  expect(errors).toEqual([])
})

it("an empty text of arguments is an empty object in the prompt", async () => {
  const { post, policy } = await speaking(["yes"])
  for (const given of ["", "{}"]) await post("chat/completions", history(given))
  expect(policy.requests[0]!.prompt).toEqual(policy.requests[1]!.prompt)
})

const chat = (body: Body): readonly [string, Body] => ["chat/completions", { messages: [user], ...body }]
const responses = (body: Body): readonly [string, Body] => ["responses", { input: "Go.", ...body }]
const messages = (...all: readonly object[]) => chat({ messages: all })
const tools = (...all: readonly object[]) => chat({ tools: all })
const fn = (more: object) => ({ type: "function", function: { name: "f", ...more } })
const schema = (json_schema: unknown) => chat({ response_format: { type: "json_schema", json_schema } })
const allowed = (allowed_tools: object) => chat({ tools: [f], tool_choice: { type: "allowed_tools", allowed_tools } })
const flat = (...all: readonly object[]) => responses({ tools: all })
const calls = (...all: readonly object[]) => ({ role: "assistant", content: null, tool_calls: all })
const call = (id: unknown) => ({ id, type: "function", function: { name: "f", arguments: "{}" } })
const output = (call_id: string) => ({ type: "function_call_output", call_id, output: "42" })
const item = (call_id: string) => ({ type: "function_call", call_id, name: "f", arguments: "{}" })

const refused: readonly (readonly [param: string, request: readonly [string, Body]])[] = [
  // Messages
  ["messages", chat({ messages: [] })],
  ["messages", chat({ messages: {} })],
  ["messages[0]", messages("Go." as never)],
  ["messages[0].role", messages({ content: "x" })],
  ["messages[0].role", messages({ role: "ipython", content: "x" })],
  ["messages[0].content", messages({ role: "user" })],
  ["messages[0].content", messages({ role: "user", content: null })],
  ["messages[0].content", messages({ role: "user", content: 7 })],
  ["messages[0].content", messages({ role: "user", content: { type: "text", text: "x" } })],
  ["messages[0].content", messages({ role: "user", content: [] })],
  ["messages[0].content", messages({ role: "user", content: "half \ud800" })],
  ["messages[0].content[0]", messages({ role: "user", content: ["x"] })],
  ["messages[0].content[0].type", messages({ role: "user", content: [{ text: "x" }] })],
  ["messages[0].content[1].text", messages({ role: "user", content: [{ type: "text", text: "x" }, { type: "text" }] })],
  ["messages[0].name", messages({ role: "user", content: "x", name: 7 })],
  ["messages[0].name", messages({ role: "user", content: "x", name: "<|im_start|>" })],
  ["messages[0].name", messages({ role: "user", content: "x", name: "two words" })],
  ["messages[0].tool_calls", messages({ ...user, tool_calls: [call("c")] })],
  ["messages[0].tool_call_id", messages({ ...user, tool_call_id: "c" })],
  ["messages[0].reasoning_content", messages({ role: "system", content: "x", reasoning_content: "Hm." })],
  ["messages[1].content", messages(user, { role: "assistant" })],
  ["messages[1].content", messages(user, { role: "assistant", content: null, tool_calls: [] })],
  ["messages[1].refusal", messages(user, { role: "assistant", content: "Yes.", refusal: "No." })],
  [
    "messages[1].reasoning",
    messages(user, { role: "assistant", content: "x", reasoning: "a", reasoning_content: "b" }),
  ],
  ["messages[1].audio", messages(user, { role: "assistant", content: "x", audio: { id: "a" } })],
  ["messages[1].function_call", messages(user, { role: "assistant", content: "x", function_call: { name: "f" } })],
  // Calls and their results
  ["messages[1].tool_calls", messages(user, { role: "assistant", tool_calls: call("c") })],
  ["messages[1].tool_calls[0].id", messages(user, calls(call(undefined)), result)],
  ["messages[1].tool_calls[0].id", messages(user, calls(call(7)), result)],
  ["messages[1].tool_calls[0].id", messages(user, calls(call("")), { ...result, tool_call_id: "" })],
  ["messages[1].tool_calls[1].id", messages(user, calls(call("c"), call("c")), result)],
  ["messages[1].tool_calls[0].type", messages(user, calls({ ...call("c"), type: "custom" }), result)],
  ["messages[1].tool_calls[0].function", messages(user, calls({ id: "c" }), result)],
  [
    "messages[1].tool_calls[0].function.name",
    messages(user, calls({ id: "c", function: { arguments: "{}" } }), result),
  ],
  [
    "messages[1].tool_calls[0].function.name",
    messages(user, calls({ id: "c", function: { name: "", arguments: "{}" } }), result),
  ],
  ["messages[1].tool_calls[0].id", messages(user, calls(call("c")))],
  ["messages[1].tool_calls[1].id", messages(user, calls(call("c"), call("d")), result)],
  ["messages[1].tool_calls[0].id", messages(user, calls(call("c")), user, result)],
  ["messages[1].tool_call_id", messages(user, result)],
  ["messages[2].tool_call_id", messages(user, calls(call("d")), result)],
  ["messages[3].tool_call_id", messages(user, calls(call("c")), result, result)],
  ["messages[2].tool_call_id", messages(user, calls(call("c")), { role: "tool", content: "42" })],
  ["messages[2].content", messages(user, calls(call("c")), { role: "tool", tool_call_id: "c" })],
  ["input[1].call_id", responses({ input: [{ role: "user", content: "Go." }, item("c")] })],
  ["input[0].call_id", responses({ input: [output("c")] })],
  ["input[1].call_id", responses({ input: [item("c"), item("c"), output("c")] })],
  ["input[2].call_id", responses({ input: [item("c"), output("c"), output("c")] })],
  ["input[1].output", responses({ input: [item("c"), { type: "function_call_output", call_id: "c" }] })],
  ["input[0].name", responses({ input: [{ ...item("c"), name: "" }] })],
  ["input[0].summary[0].text", responses({ input: [{ type: "reasoning", summary: [{ type: "summary_text" }] }] })],
  ["input[0].content[0]", responses({ input: [{ type: "reasoning", content: ["Hm."] }] })],
  ["input[0].encrypted_content", responses({ input: [{ type: "reasoning", encrypted_content: "x" }] })],
  ["input[0].content", responses({ input: [{ role: "user", content: [] }] })],
  ["input[0].type", responses({ input: [{ type: "web_search_call", id: "x" }] })],
  ...["tool_calls", "tool_call_id", "function_call", "reasoning_content", "name"].map(
    (field) => [`input[0].${field}`, responses({ input: [{ role: "assistant", content: "", [field]: "x" }] })] as const,
  ),
  ["input", responses({ input: [] })],
  ["input", responses({ input: 7 })],
  // Tools
  ["tools", chat({ tools: f })],
  ["tools[0].type", tools({ function: { name: "f" } })],
  ["tools[0].type", tools({ type: "web_search" })],
  ["tools[0].function", tools({ type: "function" })],
  ["tools[0].function", tools({ type: "function", name: "f" })],
  ["tools[0].function.name", tools(fn({ name: undefined }))],
  ["tools[0].function.name", tools(fn({ name: "" }))],
  ["tools[0].function.name", tools(fn({ name: "two words" }))],
  ["tools[0].function.name", tools(fn({ name: "é" }))],
  ["tools[0].function.name", tools(fn({ name: "f".repeat(129) }))],
  ["tools[0].function.name", tools(fn({ name: "f\n" }))],
  ["tools[1].function.name", tools(f, f)],
  ["tools[2].function.name", tools(f, fn({ name: "g" }), f)],
  ["tools[0].function.description", tools(fn({ description: 7 }))],
  ["tools[0].function.parameters", tools(fn({ parameters: [] }))],
  ["tools[0].function.parameters", tools(fn({ parameters: "{}" }))],
  ["tools[0].function.parameters.type", tools(fn({ parameters: { type: "string" } }))],
  ["tools[0].function.parameters", tools(fn({ parameters: { type: "object", title: "\ud800" } }))],
  ["tools[0].function.strict", tools(fn({ strict: "yes" }))],
  ["tools[0].function.paramters", tools(fn({ paramters: {} }))],
  ["tools[0].name", tools({ ...f, name: "g" })],
  ["tools[0].type", flat({ type: "file_search" })],
  ["tools[0].name", flat({ type: "function" })],
  ["tools[0].function", flat({ ...f, name: "f" })],
  ["tools[1].name", flat({ type: "function", name: "f" }, { type: "function", name: "f" })],
  ["tool_choice", chat({ tool_choice: "required" })],
  ["tool_choice", chat({ tools: [f], tool_choice: "any" })],
  ["tool_choice", chat({ tools: [f], tool_choice: true })],
  ["tool_choice", chat({ tools: [f], tool_choice: { type: "function", function: { name: "g" } } })],
  ["tool_choice.allowed_tools", chat({ tools: [f], tool_choice: { type: "allowed_tools", mode: "auto" } })],
  ["tool_choice.allowed_tools.tools", allowed({ mode: "auto", tools: [] })],
  ["tool_choice.allowed_tools.tools[0]", allowed({ tools: [{ type: "function", function: { name: "g" } }] })],
  ["tool_choice.allowed_tools.tools[0]", allowed({ tools: [{ type: "mcp", server_label: "s" }] })],
  ["tool_choice.allowed_tools.mode", allowed({ mode: "none", tools: [{ type: "function", function: { name: "f" } }] })],
  ["tool_choice.function", chat({ tools: [f], tool_choice: { type: "function", name: "f" } })],
  ["tool_choice.function.name", chat({ tools: [f], tool_choice: { type: "function", function: {} } })],
  [
    "tool_choice.function.args",
    chat({ tools: [f], tool_choice: { type: "function", function: { name: "f", args: 1 } } }),
  ],
  [
    "tool_choice.function",
    responses({ tools: [{ type: "function", name: "f" }], tool_choice: { type: "function", name: "f", function: {} } }),
  ],
  ["parallel_tool_calls", chat({ tools: [f], parallel_tool_calls: "no" })],
  // Formats
  ["response_format", chat({ response_format: "json_object" })],
  ["response_format.type", chat({ response_format: {} })],
  ["response_format.type", chat({ response_format: { type: "xml" } })],
  ["response_format.schema", chat({ response_format: { type: "json_object", schema: {} } })],
  ["response_format.json_schema", chat({ response_format: { type: "json_schema", schema: {} } })],
  ["response_format.json_schema.schema", schema({ name: "x" })],
  ["response_format.json_schema.schema", schema({ name: "x", schema: "{}" })],
  ["response_format.json_schema.schema", schema({ name: "x", schema: [] })],
  ["response_format.json_schema.name", schema({ name: 7, schema: {} })],
  ["response_format.json_schema.strict", schema({ name: "x", schema: {}, strict: 1 })],
  ["response_format.json_schema.shcema", schema({ schema: {}, shcema: {} })],
  ["text.format.schema", responses({ text: { format: { type: "json_schema", name: "x" } } })],
  ["text.format.json_schema", responses({ text: { format: { type: "json_schema", schema: {}, json_schema: {} } } })],
  ["verbosity", chat({ verbosity: "low" })],
  ["usage.cost", chat({ usage: { cost: true } })],
  ["min_tokens", chat({ min_tokens: 5 })],
  ["reasoning_effort", chat({ reasoning_effort: "high" })],
  ["reasoning_effort", chat({ reasoning_effort: "great" })],
  ["reasoning.effort", chat({ reasoning: { effort: "high" } })],
  ["reasoning.effort", chat({ reasoning_effort: "low", reasoning: { effort: "high" } })],
  ["reasoning.max_tokens", chat({ reasoning: { max_tokens: 100 } })],
  ["reasoning.exclude", chat({ reasoning: { exclude: true } })],
  ["text.verbosity", responses({ text: { verbosity: "low" } })],
  // Sampling
  ...["max_tokens", "max_completion_tokens"].flatMap((field) =>
    [0, -1, 1.5, "16", true, [16], 2 ** 53].map((value) => [field, chat({ [field]: value })] as const),
  ),
  ["max_tokens", chat({ max_tokens: 5, max_completion_tokens: 6 })],
  ...[0, -1, 1.5, "16"].map((value) => ["max_output_tokens", responses({ max_output_tokens: value })] as const),
  ...[7, {}, [""], "", ["a", 7], ["a", "b", "c", "d", "e"], "\ud800", [null]].map(
    (stop) => ["stop", chat({ stop })] as const,
  ),
  ...[0, -1, 1.5, "2", 129, true].map((n) => ["n", chat({ n })] as const),
  ...[1.5, "1", 2 ** 53, true, {}].map((seed) => ["seed", chat({ seed })] as const),
  ...["1", -0.1, 2.1, true, []].map((temperature) => ["temperature", chat({ temperature })] as const),
  ["temperature", responses({ temperature: "1" })],
  ...[{ 5: 1 }, [], "x", 0].map((logit_bias) => ["logit_bias", chat({ logit_bias })] as const),
  ...[0.5, "1", 0].map((top_p) => ["top_p", chat({ top_p })] as const),
  ["frequency_penalty", chat({ frequency_penalty: 0.1 })],
  ["presence_penalty", chat({ presence_penalty: -1 })],
  ["logprobs", chat({ logprobs: 5 })],
  ["top_logprobs", chat({ top_logprobs: 2 })],
  ["top_logprobs", chat({ logprobs: true, top_logprobs: -1 })],
  ["top_logprobs", responses({ top_logprobs: 2 })],
  ["include[1]", responses({ include: ["message.output_text.logprobs", "everything"] })],
  ["include", responses({ include: "message.output_text.logprobs" })],
  ["stream", chat({ stream: "yes" })],
  ["stream_options", chat({ stream_options: {} })],
  ["stream_options.include_usage", chat({ stream: true, stream_options: { include_usage: 1 } })],
  ["metadata", responses({ metadata: 7 })],
  ["metadata", responses({ metadata: ["x"] })],
  ["instructions", responses({ instructions: ["Be."] })],
  ["model", chat({ model: 7 })],
  ["wisdom", chat({ wisdom: 1 })],
  ["wisdom", responses({ wisdom: 1 })],
]

it("what cannot be meant is rejected by the field's name", async () => {
  const { post, policy, errors } = await speaking(["yes"])
  for (const [param, [path, body]] of refused) {
    const response = await post(path, body)
    const { error }: Answer = await response.json()
    expect([response.status, error?.param], JSON.stringify(body).slice(0, 300)).toEqual([400, param])
  }
  expect(policy.requests).toEqual([])
  expect(errors).toEqual([])
})

it("what clients do send is taken", async () => {
  const { post, errors } = await speaking(["yes"])
  const said = { role: "assistant", content: "Yes.", refusal: null, annotations: [], audio: null, function_call: null, tool_calls: null, parsed: null } // biome-ignore format: one line
  const taken: readonly (readonly [string, Body])[] = [
    messages({ ...user, name: "ada" }, said, user),
    messages({ ...user, tool_calls: [], reasoning: "" }, { ...said, tool_calls: [], name: "policy" }, user),
    messages(user, { role: "assistant", content: [], tool_calls: [call("c"), call("d")] }, { ...result, tool_call_id: "d", name: "f" }, result), // biome-ignore format: one line
    messages(user, calls(call("c")), result, calls(call("c")), result, user), // an id of its own in each turn
    messages(user, { role: "assistant", content: null, refusal: "No." }, user),
    chat({
      tools: [],
      tool_choice: "none",
      stop: [],
      stream_options: null,
      n: null,
      max_tokens: 5,
      max_completion_tokens: 5,
    }),
    chat({
      tools: [fn({ description: null, parameters: null, strict: null }), fn({ name: "g", return: { type: "string" } })],
    }),
    schema({ name: "x", schema: { type: "object" }, strict: false, description: null }),
    responses({ input: [item("c"), output("c"), item("d"), output("d")] }),
    responses({
      input: [item("c"), item("d"), output("d"), output("c")],
      top_logprobs: 0,
      text: { verbosity: "medium" },
    }),
    responses({ include: ["reasoning.encrypted_content"], metadata: null }),
    // Without effect
    chat({
      usage: { include: true },
      reasoning: {},
      logprobs: false,
      top_logprobs: 0,
      min_tokens: 0,
      verbosity: "medium",
    }),
    chat({ reasoning_effort: "none", reasoning: { enabled: true, exclude: false } }),
    responses({ reasoning: { effort: "none", summary: "auto" } }),
  ]
  for (const [path, body] of taken) {
    const response = await post(path, body)
    expect(response.status, `${JSON.stringify(body)}: ${await response.text()}`).toBe(200)
  }
  expect(errors).toEqual([])
})

it("bytes that are not UTF-8 are rejected, and a byte order mark is none of the JSON", async () => {
  const { fetch, baseURL, apiKey } = await speaking(["yes"])
  const send = (body: Uint8Array<ArrayBuffer>) =>
    fetch(`${baseURL}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body,
    })
  const text = JSON.stringify({ model: "policy", messages: [user] })
  expect((await send(new Uint8Array(Buffer.from(`\ufeff${text}`)))).status).toBe(200)
  const latin = new Uint8Array(Buffer.from(text.replace("Go.", "Gö."), "latin1"))
  const response = await send(latin)
  expect([response.status, ((await response.json()) as Answer).error.message]).toEqual([
    400,
    "The request is not UTF-8.",
  ])
})

it("what programs say of their episode is rejected where it cannot be meant", () => {
  const heard: unknown[] = []
  const episode = { step: (state: object) => void heard.push(state), end: (end: unknown) => void heard.push(end) }
  const step = (body: unknown) => () => tellings["/v1/gigpo/step"]!(episode, body)
  for (const body of [{}, null, "x", [], { anchor: 7 }, { anchor: null }, { anchor: "a", reward: 1 }])
    expect(step(body), JSON.stringify(body)).toThrow(expect.objectContaining({ status: 400 }))
  const reward = (body: unknown) => () => tellings["/v1/gigpo/reward"]!(episode, body)
  for (const body of ["1", {}, [1], true, { reward: "1" }, { reward: 1, sucess: true }, { reward: 1, success: "yes" }])
    expect(reward(body), JSON.stringify(body)).toThrow(expect.objectContaining({ status: 400 }))
  expect(heard).toEqual([])
  step({ anchor: "" })()
  reward({ reward: 1, success: true })()
  expect(heard).toEqual([{ anchor: "" }, { reward: 1, success: true, metrics: {} }])
})
