import { expect, it } from "vitest"
import { anthropic } from "../../src/chat/anthropic/anthropic.ts"
import type { Tool } from "../../src/chat/call.ts"
import { CompletionParser } from "../../src/chat/completion-parser.ts"
import { chat } from "../../src/chat/completions/chat.ts"
import { text } from "../../src/chat/completions/text.ts"
import type { Dialect } from "../../src/chat/dialect.ts"
import { ollamaChat } from "../../src/chat/ollama/ollama.ts"
import { responses } from "../../src/chat/responses/responses.ts"
import { toolFormat } from "../../src/chat/tools/format.ts"
import { Transcript } from "../../src/chat/transcript.ts"
import { RawJson } from "../../src/json/raw.ts"
import { parseJson } from "../../src/json/text.ts"
import { atOnce } from "../../src/util/pace.ts"

// A large request is read in many pieces, between which other clients are answered.

const many = <T>(make: (index: number) => T, count = 4000) => Array.from({ length: count }, (_, index) => make(index))
const ones = Array(400_000).fill(1)
const user = { role: "user", content: "a" }
const called = (given: unknown, id = "c") => ({ id, type: "function", function: { name: "f", arguments: given } })
const answered = (calls: readonly { readonly id: string }[]) => [
  ...[user, { role: "assistant", tool_calls: calls }],
  ...calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "b" })),
]
const schema = { type: "object", properties: { a: { enum: ones } } }
const flat = (name: string) => ({ type: "function", name, parameters: schema })

const requests: readonly (readonly [what: string, dialect: Dialect, body: object])[] = [
  ["arguments of a call", chat, { messages: answered([called(JSON.stringify({ a: ones }))]) }],
  ["calls", chat, { messages: answered(many((index) => called("{}", `c${index}`))) }],
  ["messages", chat, { messages: many(() => user) }],
  ["parts of a message", chat, { messages: [{ ...user, content: many(() => ({ type: "text", text: "a" })) }] }],
  ["tools", chat, { messages: [user], tools: many((index) => ({ type: "function", function: { name: `f${index}` } }), 1000) }], // biome-ignore format: one line
  ["parameters of a tool", chat, { messages: [user], tools: [{ type: "function", function: flat("f") }] }],
  ["a variable", chat, { messages: [user], chat_template_kwargs: { a: ones } }],
  ["a schema", chat, { messages: [user], response_format: { type: "json_schema", json_schema: { schema } } }],
  ["a schema", text, { prompt: "a", response_format: { type: "json_schema", json_schema: { schema } } }],
  ["arguments of a call", responses, { input: [user, { type: "function_call", call_id: "c", name: "f", arguments: JSON.stringify({ a: ones }) }, { type: "function_call_output", call_id: "c", output: "b" }] }], // biome-ignore format: one line
  ["items", responses, { input: many(() => user) }],
  ["thoughts", responses, { input: [user, { type: "reasoning", content: many(() => ({ text: "a" })), summary: [] }] }],
  ["parameters of a tool", responses, { input: "a", tools: [flat("f")] }],
  ["blocks", anthropic, { messages: [{ ...user, content: many(() => ({ type: "text", text: "a" })) }] }],
  ["input of a call", anthropic, { messages: [user, { role: "assistant", content: [{ type: "tool_use", id: "c", name: "f", input: { a: ones } }] }, { role: "user", content: [{ type: "tool_result", tool_use_id: "c" }] }] }], // biome-ignore format: one line
  ["results", anthropic, { messages: [user, { role: "assistant", content: many((index) => ({ type: "tool_use", id: `c${index}`, name: "f" })) }, { role: "user", content: many((index) => ({ type: "tool_result", tool_use_id: `c${index}` })) }] }], // biome-ignore format: one line
  ["turns", anthropic, { messages: many(() => user) }],
  ["messages", ollamaChat, { messages: many(() => user) }],
  ["arguments of a call", ollamaChat, { messages: answered([called({ a: ones })]) }],
  ["a schema", ollamaChat, { messages: [user], format: schema }],
]

it.each(requests)("%s (%#)", (_, dialect, body) => {
  const reading = dialect.read(parseJson(JSON.stringify({ model: "m", ...body })), () => ({ token: "", bytes: [] }))
  let pieces = 0
  while (!reading.next().done) pieces++
  expect(pieces).toBeGreaterThanOrEqual(90)
})

const use = (index: number) => ({ type: "tool_use", id: `c${index}`, name: "f" })
const result = (index: number, content: unknown) => ({ type: "tool_result", tool_use_id: `c${index}`, content })
const turns = (uses: readonly object[], results: readonly object[]) => [
  user,
  { role: "assistant", content: uses },
  { role: "user", content: results },
]
const references = many(() => ({ type: "tool_reference", tool_name: "f" }), 9)
const described = { name: "f", description: "a".repeat(500_000), input_schema: { type: "object" } }

it.each<[string, Dialect, object, RegExp]>([
  [
    "calls of a message",
    ollamaChat,
    { messages: [user, { role: "assistant", tool_calls: many(() => ({ function: { name: "f" } }), 4097) }] },
    /messages\[1\].tool_calls has 4097 calls; send at most 4096/,
  ],
  [
    "results",
    anthropic,
    {
      messages: turns(
        many(use, 16_384),
        many((index) => result(index, "a"), 16_384),
      ),
    },
    /messages have more than 16384 messages and results together/,
  ],
  [
    "descriptions by reference",
    anthropic,
    { tools: [described], messages: turns([use(0)], [result(0, references)]) },
    /content\[8\].tool_name makes the descriptions that results refer to longer than 4194304 characters/,
  ],
])("rejects too many %s", (_, dialect, body, said) => {
  const reading = dialect.read(parseJson(JSON.stringify({ model: "m", ...body })), () => ({ token: "", bytes: [] }))
  expect(() => atOnce(reading)).toThrow(said)
})

it("parses a finished completion in pieces", () => {
  const parser = new CompletionParser({
    decode: (tokens) => "a".repeat(tokens.length),
    reader: toolFormat("").reader({ tools: false, opening: "", answers: undefined }),
    ...{ stop: [], id: "x", listener: undefined },
  })
  const tokens = new Int32Array(8192)
  const parsing = parser.end({ tokens, logProbs: new Float32Array(tokens.length), finishReason: "stop" })
  let pieces = 0
  let step = parsing.next()
  for (; !step.done; step = parsing.next()) pieces++
  expect(step.value.content).toHaveLength(8192)
  expect(pieces).toBeGreaterThanOrEqual(90)
})

it("compares a large request with earlier ones in pieces", () => {
  const large = JSON.stringify({ a: ones })
  const tool = {
    name: "f",
    parameters: schema,
    strict: false,
    field: "f",
    definition: { words: many(() => "a", 60_000) },
  }
  const call = { id: "c", name: "f", arguments: large }
  const requests = [
    { tools: [], messages: [{ role: "assistant", content: "", toolCalls: [call] }] },
    { tools: [tool as Tool], messages: [] },
    { tools: [], messages: [], variables: { a: RawJson.known(large) } },
  ] as const
  for (const request of requests) {
    const following = new Transcript().follow({ toolChoice: "auto", ...request })
    let pieces = 0
    while (!following.next().done) pieces++
    expect(pieces).toBeGreaterThanOrEqual(90)
  }
})
