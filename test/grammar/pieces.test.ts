import { expect, it } from "vitest"
import type { Call } from "../../src/chat/call.ts"
import { Constraints } from "../../src/chat/constraints.ts"
import { qwen } from "../../src/chat/tools/qwen.ts"
import { compile, compileInPieces } from "../../src/grammar/compile.ts"
import { jsonSchema, jsonSchemaInPieces } from "../../src/grammar/json-schema.ts"
import type { Pieces } from "../../src/util/pace.ts"
import { bytes } from "./texts.ts"

const count = 3000
const names = Array.from({ length: count }, (_, at) => `name-${at}`)
const schemas = {
  "constants of which one must hold": { oneOf: names.map((name) => ({ const: name })) },
  "listed values": { enum: names },
  properties: { properties: Object.fromEntries(names.map((name) => [name, { type: "null" }])), required: names },
  items: { prefixItems: names.map((name) => ({ const: name })), items: false },
}

function inPieces<T>(pieces: Pieces<T>): { readonly value: T; readonly count: number } {
  for (let count = 1; ; count++) {
    const { done, value } = pieces.next()
    if (done) return { value, count }
  }
}

for (const [name, schema] of Object.entries(schemas))
  it(`pauses as often as a schema has parts: ${name}`, () => {
    const read = inPieces(jsonSchemaInPieces(schema))
    expect(read.count).toBeGreaterThan(count)
    const made = inPieces(compileInPieces(read.value))
    expect(made.count).toBeGreaterThan(count)
    expect(made.value).toEqual(compile(jsonSchema(structuredClone(schema))))
  })

it("lets the event loop turn while a reply's grammar is made, and makes it once for equal calls", async () => {
  const constraints = new Constraints(qwen(false), { vocabulary: () => bytes })
  const call: Call = {
    ...{ model: "policy", messages: [], tools: [], toolChoice: "auto", parallel: true, maxTokens: undefined, stop: [] },
    format: { kind: "schema", schema: schemas["constants of which one must hold"], field: "response_format" },
    ...{ count: 1, seed: undefined, temperature: undefined, logProbs: false, topLogProbs: 0, stream: false },
  }
  let turns = 0
  let made = false
  const turn = () => {
    turns++
    if (!made) setImmediate(turn)
  }
  setImmediate(turn)
  const [first, second] = await Promise.all([constraints.of(call, ""), constraints.of({ ...call }, "")])
  made = true
  expect(first).toBe(second)
  expect(turns).toBeGreaterThan(2)
})
