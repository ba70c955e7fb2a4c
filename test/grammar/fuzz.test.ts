import { expect, it } from "vitest"
import { Constraint } from "../../src/engine/native/constraint.ts"
import { jsonSchema } from "../../src/grammar/json-schema.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { Random } from "../../src/util/random.ts"
import { randomSchema, satisfies } from "./random-schema.ts"
import { bytes, draw } from "./texts.ts"

it("whatever is drawn by a random schema parses and satisfies it", () => {
  let drawn = 0
  for (let seed = 0; seed < 150; seed++) {
    const random = new Random(seed)
    const schema = randomSchema(random)
    for (let again = 0; again < 3; again++) {
      const text = draw(jsonSchema(schema), (n) => random.below(n), 300)
      if (text === undefined) continue // too long
      drawn++
      expect(satisfies(JSON.parse(text), schema, schema), `${text} of ${JSON.stringify(schema)}`).toBe(true)
    }
  }
  expect(drawn).toBeGreaterThan(200)
})

it("schemas of nonsense are rejected or held to, and nothing else happens", () => {
  const keywords = ["type", "properties", "required", "additionalProperties", "propertyNames", "items", "prefixItems", "minItems", "maxItems", "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "$defs", "not", "title"] // biome-ignore format: one line
  const values = [null, true, false, 0, -1, 1.5, 1e9, 2 ** 60, "", "string", "object", "array", "#", "#/anyOf/0", "#/x", "(", "(a+)+$", "[", "\\p{L}{9999}", "date", [], [[]], ["a"], ["string", "null"], {}, { a: {} }, [{}, {}]] // biome-ignore format: one line
  let refused = 0
  for (let seed = 0; seed < 3000; seed++) {
    const random = new Random(seed).derive("nonsense")
    const soup = (depth: number): unknown => {
      if (depth > 3 || random.below(4) === 0) return values[random.below(values.length)]
      if (random.below(6) === 0) return Array.from({ length: random.below(3) }, () => soup(depth + 1))
      return Object.fromEntries(
        Array.from({ length: 1 + random.below(3) }, () => [keywords[random.below(keywords.length)]!, soup(depth + 1)]),
      )
    }
    const schema = soup(0)
    try {
      new Constraint(jsonSchema(schema), bytes)
    } catch (error) {
      refused++
      expect(GigpoError.is(error) && error.code, `${error} of ${JSON.stringify(schema)}`).toBe("BAD_ARGUMENT")
    }
  }
  expect(refused).toBeGreaterThan(1000)
  expect(refused).toBeLessThan(3000)
})
