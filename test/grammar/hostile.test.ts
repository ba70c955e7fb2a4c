import { expect, it } from "vitest"
import { compile } from "../../src/grammar/compile.ts"
import { jsonSchema } from "../../src/grammar/json-schema.ts"
import { parseJson } from "../../src/json/text.ts"

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
/** Spellings of one pointer. */
const spelled = (name: string, count: number) =>
  Array.from({ length: count }, (_, i) => ({
    $ref: `#/$defs/${[...name].map((char, k) => ((i >> k) & 1 ? `%${char.charCodeAt(0).toString(16)}` : char)).join("")}`,
  }))
const tagged = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ type: "object", properties: { kind: { const: i } }, required: ["kind"] }))
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
    /a name may have at most 200 characters/,
  ],
  ["lists of which one must hold", { oneOf: [numbers(10_000, 9000), numbers(50_000, 9000)] }, /^$/],
  ["objects in lists", { oneOf: [{ const: { a: 1, b: 2 } }, { const: { b: 2, a: 1 } }] }, /oneOf with schemas that/],
  [
    "thousands of properties",
    { type: "object", required: names(5000), properties: props(5000), additionalProperties: false },
    /^$/,
  ],
  [
    "thousands of constants of which one must hold",
    { oneOf: numbers(0, 7000).enum.map((one) => ({ const: one })) },
    /^$/,
  ],
  [
    "the same constant at the end",
    { oneOf: [...numbers(0, 7000).enum, 0].map((one) => ({ const: one })) },
    /that overlap/,
  ],
  ["a thousand objects with a tag", { oneOf: tagged(1400) }, /^$/],
  [
    "objects with a tag and a list",
    { oneOf: [...tagged(1000), { type: "array" }, { const: 1, type: "string" }] },
    /^$/,
  ],
  ["objects with tags in pairs", { oneOf: Array.from({ length: 70 }, (_, i) => inPairs(i)) }, /too many schemas/],
  [
    "a definition that is pointed to in hundreds of ways",
    { anyOf: spelled("abcdefghi", 490), $defs: { abcdefghi: { enum: numbers(10_000, 7000).enum.map(String) } } },
    /^$/,
  ],
  ["dots", { type: "string", pattern: `^${".".repeat(130_000)}$` }, /instructions/],
  ["classes", { type: "string", pattern: `^${"[^a]".repeat(30_000)}$` }, /instructions/],
  [
    "classes that all differ",
    {
      type: "string",
      pattern: `^${Array.from({ length: 20_000 }, (_, i) => `[^${String.fromCodePoint(0x4e00 + i)}]`).join("")}$`,
    },
    /instructions/,
  ],
  [
    "long names that differ from all others",
    {
      type: "object",
      properties: Object.fromEntries(names(580).map((name) => [name.padEnd(200, "x"), {}])),
      additionalProperties: true,
    },
    /instructions/,
  ],
  ["bounds of hundreds of digits", { anyOf: Array.from({ length: 2500 }, (_, i) => between(i)) }, /instructions/],
  ["one type thousands of times", { type: Array(6000).fill("string"), enum: numbers(0, 6000).enum }, /^$/],
  ["one type of many properties", { type: Array(4000).fill("object"), properties: props(3000) }, /^$/],
  ["a tuple of tens of thousands", { type: "array", prefixItems: Array(43_000).fill({}) }, /instructions/],
  ["nothing, repeated in each other", { type: "string", pattern: `^${"(".repeat(45)}${"){1,2}".repeat(45)}$` }, /^$/],
  [
    "nothing or nothing, repeated in each other",
    { type: "string", pattern: `^${"(".repeat(45)}|${"){2,3}".repeat(45)}$` },
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

it("reads long numbers at a cost that grows with their length", { timeout: 20_000 }, () => {
  const schema = parseJson(`{"type": "integer", "minimum": 1${"0".repeat(120_000)}1}`)
  expect(() => jsonSchema(schema)).toThrow(/at most 400 digits/)
})

/** Nothing that is true of this one is true of the next, but no property tells all apart. */
function inPairs(at: number): object {
  const tags = [at, at + 1].map((tag) => [`t${tag}`, { const: at }])
  return { type: "object", properties: Object.fromEntries(tags), required: tags.map(([name]) => name) }
}

function between(at: number): unknown {
  return { type: "integer", minimum: 1, maximum: 10 ** 300 + at }
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `n${i}`)
}

function props(count: number): object {
  return Object.fromEntries(names(count).map((name) => [name, {}]))
}
