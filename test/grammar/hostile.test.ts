import { expect, it } from "vitest"
import { compile } from "../../src/grammar/compile.ts"
import { jsonSchema } from "../../src/grammar/json-schema.ts"

// Schemas that somebody wrote to stop the program. What is wrong with each is said, and said at once: the time limit is the test's.

const chain = (count: number) => ({
  $ref: "#/$defs/d0",
  $defs: Object.fromEntries(
    Array.from({ length: count }, (_, i) => [
      `d${i}`,
      i + 1 < count ? { $ref: `#/$defs/d${i + 1}` } : { type: "null" },
    ]),
  ),
})
const numbers = (from: number, count: number) => ({ enum: Array.from({ length: count }, (_, i) => from + i) })

it.each<[string, unknown, RegExp]>([
  ["a constant of megabytes", { const: "x".repeat(3e7) }, /characters; give one of at most/],
  ["a pattern of megabytes", { type: "string", pattern: "a".repeat(2e6) }, /characters; give one of at most/],
  ["a constant as long as may be", { const: "x".repeat(130_000) }, /more than 131072 instructions|^$/],
  ["a pattern as long as may be", { type: "string", pattern: "é".repeat(130_000) }, /more than 131072 instructions/],
  ["definitions that name one another", chain(490), /nested more than 64 deep/],
  [
    "a name that is told apart from all others",
    { type: "object", properties: { ["x".repeat(20_000)]: true }, additionalProperties: true },
    /a name may have 200 characters/,
  ],
  ["lists of which one must hold", { oneOf: [numbers(10_000, 9000), numbers(50_000, 9000)] }, /^$/],
  [
    "objects in lists",
    { oneOf: [{ const: { a: 1, b: 2 } }, { const: { b: 2, a: 1 } }] },
    /oneOf whose schemas may hold/,
  ],
  [
    "thousands of properties",
    { type: "object", required: names(5000), properties: props(5000), additionalProperties: false },
    /^$/,
  ],
  ["a repetition of nothing", { type: "string", pattern: "^(((((){1000}){1000}){1000}){1000}){1000}$" }, /^$/],
  ["a repetition of repetitions", { type: "string", pattern: "^(((a{1000}){1000}){1000}){1000}$" }, /instructions/],
])("%s", { timeout: 20_000 }, (_, schema, refused) => {
  let said = ""
  try {
    compile(jsonSchema(schema))
  } catch (error) {
    expect(error).toMatchObject({ code: "BAD_ARGUMENT" })
    said = String((error as Error).message)
  }
  expect(said).toMatch(refused)
})

function names(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `n${i}`)
}

function props(count: number): object {
  return Object.fromEntries(names(count).map((name) => [name, {}]))
}
