import { expect, it } from "vitest"
import { readConversation } from "../../src/data/conversation.ts"
import { parseJson } from "../../src/json/text.ts"

// Lines of transcripts, field by field: what Hugging Face and OpenAI write is read, and what cannot be meant is rejected by name.

const line = (given: string) =>
  `{"messages": [{"role": "user", "content": "Go."}, {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": ${given}}}]}]}`
const read = (text: string) => readConversation(parseJson(text), "all")
const at = "messages[1].tool_calls[0].function.arguments"

it("accepts arguments as objects or as JSON text, preserved as written", () => {
  for (const given of ["{}", '{"id": 2512292042121000001, "10": 20.0, "2": [1e-07]}', '{ "a" : "\\u00e9" }']) {
    for (const text of [given, JSON.stringify(given)]) {
      const { messages } = read(line(text))
      expect(messages[1]).toMatchObject({ toolCalls: [{ name: "f", arguments: given }] })
    }
  }
  expect(read(line('""')).messages[1]).toMatchObject({ toolCalls: [{ arguments: "{}" }] })
})

it.each(["null", "[]", "[1]", "1", "true", '" "', '"null"', '"[1]"', '"\\"{}\\""', '"{"', '"NaN"', '{"a": "\\ud800"}'])(
  "rejects the arguments %s by name",
  (given) => expect(() => read(line(given))).toThrow(expect.objectContaining({ param: at })),
)

const messages = (...all: readonly object[]) => JSON.stringify({ messages: all })
const user = { role: "user", content: "Go." }
const said = { role: "assistant", content: "Yes." }
const tools = (value: unknown) => JSON.stringify({ messages: [user, said], tools: value })

it.each<[param: string, text: string]>([
  ["messages[0].role", messages({ content: "x" }, said)],
  ["messages[0].content", messages({ role: "user" }, said)],
  ["messages[0].content", messages({ role: "user", content: 7 }, said)],
  ["messages[0].tool_calls", messages({ ...user, tool_calls: [{ function: { name: "f", arguments: {} } }] }, said)],
  ["messages[1].content", messages(user, { role: "assistant" })],
  ["messages[1].content", messages(user, { role: "assistant", content: null, tool_calls: null })],
  ["messages[1].tool_calls[0].function.name", messages(user, { role: "assistant", tool_calls: [{ function: { arguments: {} } }] })], // biome-ignore format: one line
  ["messages[1].tool_calls[0]", messages(user, { role: "assistant", tool_calls: ["f"] })],
  ["messages[1].tool_calls", messages(user, { role: "assistant", tool_calls: {} })],
  ["tools", tools("no list")],
  ["tools", tools({ name: "f" })],
  ["tools[0]", tools([7])],
  ["tools[0].function.name", tools([{ name: "two words" }])],
  ["tools[1].function.name", tools([{ name: "f" }, { name: "f" }])],
  ["tools[0].function.parameters", tools([{ name: "f", parameters: [] }])],
  ["tools[0].function.paramters", tools([{ name: "f", paramters: {} }])],
  ["chat_template_kwargs", JSON.stringify({ messages: [user, said], chat_template_kwargs: [] })],
])("rejects by name what cannot be meant: %s", (param, text) => {
  expect(() => read(text)).toThrow(expect.objectContaining({ param }))
})

it("accepts rows of tables, with every key in every row, and tools as JSON", () => {
  const table = { name: null, tool_calls: null, tool_call_id: null, thinking: null }
  const call = { id: null, type: null, function: { name: "f", arguments: { a: 1 } } }
  const { messages: all, tools: known } = read(
    JSON.stringify({
      messages: [
        { ...table, ...user },
        { ...table, role: "assistant", content: null, tool_calls: [call] },
        { ...table, role: "tool", name: "f", content: "1" },
        { ...table, ...said },
      ],
      tools: JSON.stringify([{ type: "function", function: { name: "f", description: null, parameters: null } }]),
    }),
  )
  expect(all.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"])
  expect(known.map(({ name }) => name)).toEqual(["f"])
  const blank = { id: "", function: { name: "f", arguments: {} } }
  const { messages: blanks } = read(
    messages(user, { role: "assistant", tool_calls: [blank, blank] }, { role: "tool", tool_call_id: "", content: "1" }),
  )
  const [first, second] = [{ id: "call_0" }, { id: "call_1" }]
  expect(blanks.slice(1)).toMatchObject([{ toolCalls: [first, second] }, { toolCallId: first.id }])
})
