import { describe, expect, it } from "vitest"
import { type Answer, events, speaking, thinks } from "./speaking.ts"

// The Messages API: what is read, what is written, whole and streamed, and that a prompt is the same as by chat completions.

const look = {
  name: "look",
  description: "Looks.",
  input_schema: { type: "object", properties: { where: { type: "string" } } },
}
const sameLook = { type: "function", function: { name: "look", description: "Looks.", parameters: look.input_schema } }
const call = (where: string) => `<tool_call>\n{"name": "look", "arguments": {"where": "${where}"}}\n</tool_call>`
const user = { role: "user", content: "Go." }

/** The message that the events of a stream make. */
function joined(told: readonly Answer[]): Answer {
  const message: Answer = {}
  for (const { type, ...event } of told) {
    if (type === "message_start") Object.assign(message, event.message)
    if (type === "content_block_start") {
      expect(event.index).toBe(message.content.length)
      message.content.push({ ...event.content_block, ...(event.content_block.type === "tool_use" && { input: "" }) })
    }
    const block = message.content?.[event.index]
    if (type === "content_block_delta") {
      const { type: kind, ...delta } = event.delta
      const [[name, text]] = Object.entries(delta) as [[string, string]]
      block[kind === "input_json_delta" ? "input" : name] += text
    }
    if (type === "content_block_stop" && block.type === "tool_use") block.input = JSON.parse(block.input)
    if (type === "message_delta") Object.assign(message, event.delta, { usage: event.usage })
  }
  expect(told.at(-1).type).toBe("message_stop")
  return message
}

const asks = [false, true].map((stream) => ({
  name: stream ? "streamed" : "whole",
  ask: async (post: Awaited<ReturnType<typeof speaking>>["post"], body: object): Promise<Answer> => {
    const response = await post("messages", { max_tokens: 400, stream, ...body })
    expect(response.status).toBe(200)
    return stream ? joined(await events(response)) : await response.json()
  },
}))

describe.each(asks)("$name", ({ ask }) => {
  it("returns text, thoughts and calls as blocks, with stop reason and token counts", async () => {
    const said = `Hm.\n</think>\n\nLet me see.\n${call("left")}\n${call("right")}`
    const { post, policy } = await speaking([said], { template: thinks })
    const message = await ask(post, { messages: [user], tools: [look] })
    const [{ prompt }] = policy.requests as [Answer]
    expect(message).toEqual({
      ...{ id: expect.stringMatching(/^msg_/), type: "message", role: "assistant", model: "policy" },
      content: [
        { type: "thinking", thinking: "Hm.", signature: expect.stringMatching(/^[0-9a-f]{16}$/) },
        { type: "text", text: "Let me see." },
        { type: "tool_use", id: expect.stringMatching(/^call_/), name: "look", input: { where: "left" } },
        { type: "tool_use", id: expect.stringMatching(/^call_/), name: "look", input: { where: "right" } },
      ],
      ...{ stop_reason: "tool_use", stop_sequence: null },
      usage: {
        ...{ input_tokens: prompt.length, output_tokens: policy.tokens(said).length },
        ...{ cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
      },
    })
  })

  it("returns the stop reason", async () => {
    const { post } = await speaking(["One two three."])
    const of = async (more: object) => {
      const { content, stop_reason, stop_sequence } = await ask(post, { messages: [user], ...more })
      return [content[0].text, stop_reason, stop_sequence]
    }
    expect(await of({})).toEqual(["One two three.", "end_turn", null])
    expect(await of({ stop_sequences: ["three", " two"] })).toEqual(["One", "stop_sequence", " two"])
    expect((await of({ max_tokens: 1 }))[1]).toBe("max_tokens")
  })

  it("extends the conversation token by token, with the prompt of chat completions", async () => {
    const completions = [`Well.\n${call("left")}`, "Found."]
    const own = await speaking(completions)
    const messages: Answer[] = [user]
    for (const _ of completions) {
      const { content } = await ask(own.post, { system: "Be brief.", messages, tools: [look] })
      const results = content.filter(({ type }: Answer) => type === "tool_use")
      messages.push({ role: "assistant", content })
      messages.push({
        role: "user",
        content:
          results.length > 0
            ? results.map(({ id }: Answer) => ({ type: "tool_result", tool_use_id: id, content: "a key" }))
            : "More?",
      })
    }
    await ask(own.post, { system: "Be brief.", messages, tools: [look] })
    const other = await speaking(completions)
    const same: Answer[] = [{ role: "system", content: "Be brief." }, user]
    for (const more of [
      (id: string) => ({ role: "tool", tool_call_id: id, content: "a key" }),
      () => ({ role: "user", content: "More?" }),
    ]) {
      const { choices }: Answer = await (
        await other.post("chat/completions", { messages: same, tools: [sameLook] })
      ).json()
      const [{ message }] = choices
      same.push(message, more(message.tool_calls?.[0].id))
    }
    await other.post("chat/completions", { messages: same, tools: [sameLook] })
    expect(own.policy.requests.map(({ prompt, key }) => [...prompt, key])).toEqual(
      other.policy.requests.map(({ prompt, key }) => [...prompt, key]),
    )
    const [first, second, third] = own.policy.requests.map(({ prompt }) => prompt)
    expect([...second!.subarray(0, first!.length)]).toEqual([...first!])
    expect([...third!.subarray(0, second!.length)]).toEqual([...second!])
    expect([...own.errors, ...other.errors]).toEqual([])
  })
})

it("constrains completions to required tools, and to a format", async () => {
  const { post, policy } = await speaking([call("left")])
  const tools = [{ ...look, strict: true, cache_control: { type: "ephemeral" } }]
  for (const tool_choice of [
    { type: "any" },
    { type: "tool", name: "look" },
    { type: "auto", disable_parallel_tool_use: true },
  ])
    expect((await post("messages", { messages: [user], tools, tool_choice })).status).toBe(200)
  const schema = {
    type: "object",
    properties: { a: { type: "integer" } },
    required: ["a"],
    additionalProperties: false,
  }
  for (const more of [
    { output_config: { format: { type: "json_schema", schema } } },
    { output_format: { type: "json_schema", schema } },
  ])
    expect((await post("messages", { messages: [user], ...more })).status).toBe(200)
  expect(policy.requests.map(({ constraint }) => constraint !== undefined)).toEqual(Array(5).fill(true))
  await post("messages", { messages: [user], tools, tool_choice: { type: "none" } })
  expect(policy.requests[5]!.constraint).toBeUndefined()
})

it("accepts blocks of text, and fields without effect", async () => {
  const { post, policy, tokenizer } = await speaking(["Yes."])
  const text = (text: string) => ({ type: "text", text, cache_control: { type: "ephemeral" } })
  const body = {
    ...{ max_tokens: 9, system: [text("Be "), text("brief.")], metadata: { user_id: "u" }, service_tier: "auto" },
    ...{ temperature: 1, top_p: 1, thinking: { type: "enabled", budget_tokens: 2000 }, mcp_servers: [] },
    output_config: { effort: "high" },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    messages: [
      { role: "user", content: [text("Go "), text("on.")] },
      { role: "assistant", content: [{ type: "tool_use", id: "a", name: "look", input: { "2": 20.0, "1": 1 } }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: [text("a "), text("key")], is_error: true },
          text("And?"),
        ],
      },
    ],
    tools: [look],
  }
  const response = await post("messages", body)
  expect([response.status, policy.requests.length]).toEqual([200, 1])
  const prompt = tokenizer.decode(policy.requests[0]!.prompt)
  for (const part of [
    "system\nBe brief.",
    "user\nGo on.",
    '"arguments": {"1": 1, "2": 20}',
    "tool\na key<",
    "user\nAnd?",
  ])
    expect(prompt).toContain(part)
  const counted: Answer = await (await post("messages/count_tokens", body)).json()
  expect([counted, policy.requests.length]).toEqual([{ input_tokens: policy.requests[0]!.prompt.length }, 1])
})

it("describes a deferred tool once a result refers to it", async () => {
  const { post, policy, tokenizer } = await speaking(["Yes."])
  const tools = [look, { name: "dig", description: "Digs.", input_schema: { type: "object" }, defer_loading: true }]
  await post("messages", { messages: [user], tools })
  await post("messages", { messages: [user], tools: tools.slice(0, 1) })
  const found = [
    { type: "text", text: "Found: " },
    { type: "tool_reference", tool_name: "dig" },
  ]
  await post("messages", { ...turns("Go.", [use("a")], [result("a", { content: found })]), tools })
  const [deferred, without, after] = policy.requests.map(({ prompt }) => tokenizer.decode(prompt))
  expect(deferred).toBe(without)
  expect(after).toContain('tool\nFound: {"name":"dig","description":"Digs.","parameters":{"type":"object"}}\n')
})

it("keeps the numbers of arguments as they were written", async () => {
  const { fetch, baseURL, apiKey, policy, tokenizer } = await speaking(["Yes."])
  const input = '{"id": 2512292042121000001, "x": 20.0, "10": 1, "2": 1e-07}'
  const use = `{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": ${input}}]}`
  const result = '{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}'
  const body = `{"model": "policy", "max_tokens": 9, "messages": [{"role": "user", "content": "Go."}, ${use}, ${result}]}`
  const headers = { "x-api-key": apiKey, "content-type": "application/json" }
  expect((await fetch(`${baseURL}/messages`, { method: "POST", headers, body })).status).toBe(200)
  expect(tokenizer.decode(policy.requests[0]!.prompt)).toContain(input)
})

const use = (id: unknown, more: object = {}) => ({ type: "tool_use", id, name: "look", input: {}, ...more })
const result = (tool_use_id: unknown, more: object = {}) => ({ type: "tool_result", tool_use_id, ...more })
const turns = (...contents: readonly unknown[]) => ({
  messages: contents.map((content, index) => ({ role: index % 2 === 0 ? "user" : "assistant", content })),
})
const tools = (...all: readonly object[]) => ({ messages: [user], tools: all })
const more = (fields: object) => ({ messages: [user], ...fields })

it.each<[string, object]>([
  ["messages", { messages: [] }],
  ["messages", turns("Go.", "Yes.")],
  ["messages[0]", { messages: ["Go."] }],
  ["messages[0].role", { messages: [{ role: "tool", content: "x" }] }],
  ["messages[0].content", { messages: [{ role: "user" }] }],
  ["messages[0].content", turns(7)],
  ["messages[0].content", turns("half \ud800")],
  ["messages[0].name", { messages: [{ role: "user", content: "x", name: "u" }] }],
  ["messages[0].content[0].type", turns([{ text: "x" }])],
  ["messages[0].content[0].type", turns([{ type: "document", source: {} }])],
  ["messages[0].content[0].source.type", turns([{ type: "image", source: {} }])],
  ["messages[0].content[0].source.type", turns([{ type: "image", source: { type: "url", url: "http://127.0.0.1/" } }])],
  ["messages[0].content[0].source.data", turns([{ type: "image", source: { type: "base64", data: "aGk=" } }])],
  ["messages[0].content[0].text", turns([{ type: "text" }])],
  ["messages[0].content[0].wisdom", turns([{ type: "text", text: "x", wisdom: 1 }])],
  ["messages[0].content[0].tool_use_id", turns([result("a")])],
  ["messages[1].content[0].type", turns("Go.", [{ type: "server_tool_use" }], "x")],
  ["messages[1].content[0].id", turns("Go.", [use("")], [result("")])],
  ["messages[1].content[0].id", turns("Go.", [use("a")], "x")],
  ["messages[1].content[0].id", turns("Go.", [use("a")], [{ type: "text", text: "x" }, result("a")])],
  ["messages[1].content[1].id", turns("Go.", [use("a"), use("a")], [result("a")])],
  ["messages[1].content[0].name", turns("Go.", [use("a", { name: 7 })], [result("a")])],
  ["messages[1].content[0].input", turns("Go.", [use("a", { input: "{}" })], [result("a")])],
  ["messages[1].content[0].input", turns("Go.", [use("a", { input: { x: "\ud800" } })], [result("a")])],
  ["messages[2].content[0].tool_use_id", turns("Go.", [use("a")], [result("b")])],
  ["messages[2].content[1].tool_use_id", turns("Go.", [use("a")], [result("a"), result("a")])],
  [
    "messages[2].content[0].content[0].type",
    turns("Go.", [use("a")], [result("a", { content: [{ type: "document" }] })]),
  ],
  [
    "messages[2].content[0].content[0].source",
    turns("Go.", [use("a")], [result("a", { content: [{ type: "image" }] })]),
  ],
  ["messages[2].content[0].content[0].tool_name", turns("Go.", [use("a")], [result("a", { content: [{ type: "tool_reference", tool_name: "dig" }] })])], // biome-ignore format: one line
  ["tools[0].defer_loading", tools({ ...look, defer_loading: 1 })],
  ["tools[0].type", tools({ type: "web_search_20250305", name: "web_search" })],
  ["tools[0].name", tools({ ...look, name: "two words" })],
  ["tools[0].input_schema", tools({ ...look, input_schema: [] })],
  ["tools[0].input_examples", tools({ ...look, input_examples: [{}] })],
  ["tools[1].name", tools(look, look)],
  ["tool_choice", more({ tool_choice: { type: "any" } })],
  ["tool_choice", { ...tools(look), tool_choice: { type: "tool", name: "find" } }],
  ["tool_choice", { ...tools(look), tool_choice: "any" }],
  ["tool_choice.type", { ...tools(look), tool_choice: {} }],
  ["max_tokens", more({ max_tokens: 0 })],
  ["stop_sequences", more({ stop_sequences: [""] })],
  ["temperature", more({ temperature: 0.5 })],
  ["top_p", more({ top_p: 0.9 })],
  ["top_k", more({ top_k: 5 })],
  ["thinking.type", more({ thinking: {} })],
  ["output_config.effort", more({ output_config: { effort: "low" } })],
  ["output_config.format.type", more({ output_config: { format: { type: "xml" } } })],
  ["mcp_servers", more({ mcp_servers: [{ type: "url" }] })],
  ["context_management", more({ context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } })],
  ["wisdom", more({ wisdom: 1 })],
])("rejects %s in the format of Anthropic's API: %j", async (field, body) => {
  const { post, policy, errors } = await speaking(["Yes."])
  for (const path of ["messages", "messages/count_tokens"]) {
    // The temperature is the run's affair, and counting samples nothing.
    if (field === "temperature" && path !== "messages") continue
    const response = await post(path, { max_tokens: 9, ...body })
    expect(response.status).toBe(400)
    const error = { type: "invalid_request_error", message: expect.stringContaining(field) }
    expect(await response.json()).toEqual({ type: "error", error })
  }
  expect([policy.requests.length, errors.length]).toEqual([0, 0])
})

it("rejects an unknown key and an unknown model in its format", async () => {
  const { fetch, post, baseURL } = await speaking(["Yes."])
  const headers = { "x-api-key": "other", "content-type": "application/json" }
  const unknown = await fetch(`${baseURL}/messages`, { method: "POST", headers, body: "{}" })
  expect([unknown.status, await unknown.json()]).toMatchObject([
    401,
    { type: "error", error: { type: "authentication_error" } },
  ])
  const model = await post("messages", { model: "claude", max_tokens: 9, messages: [user] })
  expect([model.status, await model.json()]).toMatchObject([404, { type: "error", error: { type: "not_found_error" } }])
})

it("reports an error in the middle of a stream", async () => {
  const { post, policy } = await speaking(["One two."])
  const sample = policy.sample.bind(policy)
  policy.sample = async (request) => {
    await sample(request)
    throw new Error("a fault")
  }
  const told = await events(await post("messages", { max_tokens: 9, stream: true, messages: [user] }))
  expect(told.at(-1)).toMatchObject({ type: "error", error: { type: "api_error" } })
})
