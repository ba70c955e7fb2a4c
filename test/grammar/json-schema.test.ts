import { describe, expect, it } from "vitest"
import { jsonSchema } from "../../src/grammar/json-schema.ts"
import { parseJson } from "../../src/json/text.ts"
import { Random } from "../../src/util/random.ts"
import { draw, holder } from "./texts.ts"

const person = {
  type: "object",
  properties: {
    name: { type: "string" },
    age: { type: "integer", minimum: 0, maximum: 150 },
    tags: { type: "array", items: { type: "string" } },
  },
  required: ["name", "age"],
  additionalProperties: false,
}
const tree = {
  $defs: {
    node: {
      type: "object",
      properties: { value: { type: "number" }, children: { type: "array", items: { $ref: "#/$defs/node" } } },
      required: ["value"],
      additionalProperties: false,
    },
  },
  $ref: "#/$defs/node",
}

/** Values that a schema's grammar holds, as JSON.stringify writes them, and such that it does not. */
const cases: [string, unknown, unknown[], unknown[]][] = [
  [
    "an object",
    person,
    [
      { name: "", age: 0 },
      { name: "x", age: 150, tags: ["a", "b"] },
    ],
    [{ name: "x" }, { name: "x", age: 151 }, { age: 1, name: "x" }, { name: "x", age: 1, more: 1 }, {}],
  ],
  [
    "optional properties",
    {
      type: "object",
      properties: { a: { type: "null" }, b: { type: "null" }, c: { type: "null" } },
      additionalProperties: false,
    },
    [{}, { a: null }, { b: null }, { c: null }, { a: null, c: null }, { a: null, b: null, c: null }],
    [{ c: null, a: null }, { d: null }],
  ],
  [
    "a required one between optional ones",
    { type: "object", properties: { a: { type: "null" }, b: { type: "null" }, c: { type: "null" } }, required: ["b"] },
    [{ b: null }, { a: null, b: null }, { b: null, c: null }],
    [{}, { a: null }, { a: null, c: null }],
  ],
  [
    "additional properties",
    {
      type: "object",
      properties: { ab: { type: "null" } },
      required: ["ab"],
      additionalProperties: { type: "integer" },
    },
    [{ ab: null }, { ab: null, a: 1, abc: 2, "": 3, b: 4 }],
    [{ ab: null, a: "x" }, { a: 1 }],
  ],
  [
    "a record",
    { type: "object", additionalProperties: { type: "boolean" } },
    [{}, { x: true, y: false }, { 'q"': true }],
    [{ x: 1 }],
  ],
  [
    "a record with keys of a kind",
    { type: "object", propertyNames: { type: "string", pattern: "^k\\d$" }, additionalProperties: {} },
    [{ k1: [1] }, {}],
    [{ x: 1 }],
  ],
  ["any object", { type: "object" }, [{}, { a: { b: 1 } }], [[], 1]],
  ["anything", {}, [1, "a", null, [{}]], []],
  [
    "recursion",
    tree,
    [{ value: 1 }, { value: 1, children: [{ value: 2, children: [] }] }],
    [{ value: 1, children: [{}] }, 1],
  ],
  ["an enum", { enum: ["a", 1, null, { b: [1] }] }, ["a", 1, null, { b: [1] }], ["b", 2]],
  ["an enum of one type", { type: "string", enum: ["a", 1] }, ["a"], [1]],
  ["a const", { const: "x" }, ["x"], ["y"]],
  ["a nullable type", { type: ["string", "null"] }, ["a", null], [1]],
  ["anyOf", { anyOf: [{ type: "integer" }, { type: "array", items: { type: "integer" } }] }, [1, [1, 2]], ["a"]],
  ["oneOf apart by type", { oneOf: [{ type: "string" }, { type: "null" }] }, ["a", null], [1]],
  [
    "oneOf apart by a constant",
    {
      oneOf: [
        { type: "object", properties: { k: { const: "a" }, x: { type: "null" } }, required: ["k", "x"] },
        { type: "object", properties: { k: { const: "b" } }, required: ["k"] },
      ],
    },
    [{ k: "a", x: null }, { k: "b" }],
    [{ k: "a" }, { k: "c" }],
  ],
  ["allOf of one", { allOf: [{ type: "null" }] }, [null], [1]],
  [
    "a tuple",
    { type: "array", prefixItems: [{ type: "integer" }, { type: "string" }], items: false },
    [[1, "a"]],
    [[1], [1, "a", 2], ["a", 1]],
  ],
  [
    "a tuple with more",
    { type: "array", prefixItems: [{ type: "integer" }], items: { type: "string" }, maxItems: 3 },
    [[1], [1, "a", "b"]],
    [
      [1, "a", "b", "c"],
      [1, 2],
    ],
  ],
  [
    "numbers of items",
    { type: "array", items: { type: "integer" }, minItems: 1, maxItems: 2 },
    [[1], [1, 2]],
    [[], [1, 2, 3]],
  ],
  ["an exclusive bound", { type: "number", exclusiveMinimum: 0 }, [0.5, 1], [0, -1]],
  ["lengths", { type: "string", minLength: 1, maxLength: 2 }, ["a", "😀b"], ["", "abc"]],
  ["a format", { type: "string", format: "uuid" }, ["123e4567-e89b-12d3-a456-426614174000"], ["x"]],
  ["a pattern", { type: "string", pattern: "^a+$" }, ["aa"], ["b"]],
  [
    "annotations",
    { $schema: "https://json-schema.org/draft/2020-12/schema", title: "x", type: "boolean", default: true },
    [true],
    [1],
  ],
  [
    "a pointer with escapes",
    { $defs: { "a/b c": { type: "null" } }, anyOf: [{ $ref: "#/$defs/a~1b%20c" }] },
    [null],
    [1],
  ],
]

it.each(cases)("%s", (_name, schema, good, bad) => {
  const holds = holder(jsonSchema(schema))
  for (const value of good) expect(holds(JSON.stringify(value)), JSON.stringify(value)).toBe(true)
  for (const value of bad) expect(holds(JSON.stringify(value)), JSON.stringify(value)).toBe(false)
})

it("draws texts that parse to what the schema says", () => {
  const random = new Random(3)
  let drawn = 0
  for (let i = 0; i < 60; i++) {
    const text = draw(jsonSchema(person), (n) => random.below(n), 3000)
    if (text === undefined) continue
    const { name, age, tags = [], ...more } = JSON.parse(text)
    expect([typeof name, Number.isInteger(age) && age >= 0 && age <= 150, more]).toEqual(["string", true, {}])
    expect(tags.every((tag: unknown) => typeof tag === "string")).toBe(true)
    drawn++
  }
  expect(drawn).toBeGreaterThan(30)
})

it("keeps additional keys apart from the named ones, however they are spelled", () => {
  const holds = holder(
    jsonSchema({ type: "object", properties: { ab: { type: "null" } }, additionalProperties: { type: "integer" } }),
  )
  expect(['{"ab":null}', '{"ab":1}', '{"\\u0061b":1}', '{"a":1}', '{"abc":1}', '{"b":1}'].map(holds)).toEqual([
    true,
    false,
    false,
    true,
    true,
    true,
  ])
})

it("rejects what is not supported, with the place", () => {
  const refusals: [unknown, string][] = [
    [{ type: "string", not: {} }, '"not"'],
    [{ type: "object", properties: { a: { type: "array", uniqueItems: true } } }, "#/properties/a"],
    [{ type: "number", multipleOf: 2 }, "multipleOf"],
    [{ type: "number", minimum: 0.5 }, "#/minimum"],
    [{ type: "object", patternProperties: {} }, "patternProperties"],
    [{ type: "object", properties: { a: {} }, required: ["b"] }, '"b"'],
    [{ type: "quantity" }, "#/type"],
    [{ $ref: "https://example.org/x" }, "into the schema itself"],
    [{ $ref: "#/$defs/missing" }, "does not exist"],
    [{ allOf: [{ type: "object" }, { type: "object" }] }, "allOf"],
    [{ oneOf: [{ type: "object" }, { type: "object", properties: {} }] }, "that overlap"],
    [{ anyOf: [{ type: "null" }], minimum: 1 }, '"minimum"'],
    [{ anyOf: [] }, "anyOf"],
    [{ type: "string", format: "regex" }, "#/format"],
    [{ type: "string", pattern: "a", maxLength: 3 }, "more than one"],
    [{ type: "string", minLength: -1 }, "#/minLength"],
    [{ enum: [] }, "#/enum"],
    ["string", "an object"],
    [null, "an object"],
    [{ properties: [] }, "#/properties"],
  ]
  for (const [schema, why] of refusals) expect(() => jsonSchema(schema), JSON.stringify(schema)).toThrow(why)
  let deep: object = { type: "null" }
  for (let i = 0; i < 100; i++) deep = { type: "array", items: deep }
  expect(() => jsonSchema(deep)).toThrow("deep")
})

it("rejects schemas that nothing satisfies, and those that would never end", () => {
  const empty: unknown[] = [
    false,
    { type: "object", properties: { a: false }, required: ["a"] },
    { type: "integer", minimum: 2, maximum: 1 },
    { type: "string", enum: [1] },
    { $defs: { a: { type: "object", properties: { a: { $ref: "#/$defs/a" } }, required: ["a"] } }, $ref: "#/$defs/a" },
  ]
  for (const schema of empty)
    expect(() => holder(jsonSchema(schema)), JSON.stringify(schema)).toThrow("no text that ends")
  expect(() => holder(jsonSchema({ $ref: "#" }))).toThrow("itself")
  expect(() =>
    holder(jsonSchema({ type: "array", items: { type: "string", maxLength: 1e6 }, maxItems: 1000 })),
  ).toThrow("instructions")
  expect(holder(jsonSchema({ type: "array", items: false }))("[]")).toBe(true)
})

it("a list of definitions that name each other is bounded", () => {
  const $defs = Object.fromEntries(
    Array.from({ length: 600 }, (_, i) => [`d${i}`, { type: "array", items: { $ref: `#/$defs/d${i + 1}` } }]),
  )
  expect(() => jsonSchema({ $defs, $ref: "#/$defs/d0" })).toThrow("nested more than 64 deep")
  const anyOf = Object.keys($defs).map((name) => ({ $ref: `#/$defs/${name}` }))
  expect(() =>
    jsonSchema({ $defs: { ...Object.fromEntries(Object.keys($defs).map((name) => [name, {}])) }, anyOf }),
  ).toThrow("refers to more than")
})

const schemaOf = (text: string) => jsonSchema(parseJson(text))
/** What of these texts a schema holds. */
const heldOf = (schema: string, texts: readonly string[]) => texts.filter(holder(schemaOf(schema)))

describe("numbers that JavaScript cannot hold", () => {
  const near = ["9223372036854775806", "9223372036854775807", "9223372036854775808", "9223372036854776000"]

  it.each([
    ['{"type": "integer", "minimum": 9223372036854775807}', [1, 2, 3]],
    ['{"type": "integer", "maximum": 9223372036854775807}', [0, 1]],
    ['{"type": "integer", "exclusiveMinimum": 9223372036854775806}', [1, 2, 3]],
    ['{"type": "integer", "exclusiveMaximum": 9223372036854775807}', [0]],
    ['{"type": "integer", "minimum": 9223372036854775806.0, "maximum": 9.223372036854775807e18}', [0, 1]],
    ['{"type": "number", "minimum": 9223372036854775807, "exclusiveMaximum": 9223372036854776000}', [1, 2]],
    ['{"const": 9223372036854775807}', [1]],
    ['{"enum": [9223372036854775807, 9223372036854775808]}', [1, 2]],
    ['{"type": "integer", "enum": [9223372036854775806, 9223372036854775807.5, 1e-07]}', [0]],
    ['{"type": "object", "properties": {"id": {"const": 9223372036854775807}}, "required": ["id"]}', []],
  ])("are exact in %s", (schema, held) => {
    expect(heldOf(schema, near)).toEqual(held.map((at) => near[at]))
    if (held.length > 0) return
    const objects = near.map((id) => `{"id":${id}}`)
    expect(heldOf(schema, objects)).toEqual([objects[1]])
  })

  it("are given as they are spelled, with keys in the order in which they stand", () => {
    const texts = ["20.0", "1e-07", "-0", "1e400", '{"10":1.0,"2":[2.50]}', '"é"', "null"]
    const others = ["20", "1e-7", "0", "null ", '{"2":[2.50],"10":1.0}', '"\\u00e9"']
    for (const text of texts) expect(heldOf(`{"const": ${text}}`, [...texts, ...others])).toEqual([text])
    const listed = '{"enum": [20.0, 1e-07, -0, 1e400, { "10": 1.0, "2" : [ 2.50 ] }, "\\u00e9", null]}'
    expect(heldOf(listed, [...texts, ...others])).toEqual(texts)
  })

  it("tell alternatives apart", () => {
    const kind = (id: string) => `{"type": "object", "properties": {"id": {"const": ${id}}}, "required": ["id"]}`
    const oneOf = (...ids: string[]) => `{"oneOf": [${ids.map(kind).join()}]}`
    expect(heldOf(oneOf("9007199254740993", "9007199254740992"), ['{"id":9007199254740993}'])).toHaveLength(1)
    expect(() => schemaOf(oneOf("1", "1.0"))).toThrow("that overlap")
  })

  it("are rejected as bounds where they are no whole numbers, or longer than anything is", () => {
    for (const bound of ["0.5", "1e-07", "1e400", "9007199254740993.5", '"1"', "null"])
      expect(() => schemaOf(`{"type": "number", "minimum": ${bound}}`), bound).toThrow("must be an integer of at most")
  })
})

it("gives properties in the order in which the schema names them, also where names are numbers", () => {
  const schema =
    '{"type": "object", "properties": {"10": {"const": 1}, "b": {"const": 2}, "2": {"const": 3}}, "required": ["10", "b", "2"]}'
  expect(heldOf(schema, ['{"10":1,"b":2,"2":3}', '{"2":3,"10":1,"b":2}'])).toEqual(['{"10":1,"b":2,"2":3}'])
})
