import { expect, it } from "vitest"
import { RawJson, writeJson } from "../../src/json/raw.ts"
import { parseJson } from "../../src/json/text.ts"
import { parseJson as asPython } from "../../src/tokenizer/jinja/parse-json.ts"
import { plainValue } from "../../src/tokenizer/jinja/plain-value.ts"
import { atOnce } from "../../src/util/pace.ts"
import { Random } from "../../src/util/random.ts"
import { foreignJson } from "../foreign-json.ts"

it("equals the value that Python reads from the JSON of the same data", () => {
  const random = new Random(3)
  for (let i = 0; i < 500; i++) {
    const { text } = foreignJson(random)
    const value = {
      "10": [1, 2.5, 1e21, -0, "\ud800", null, true],
      own: { b: [{}, "\ud83d"], a: false },
      kept: parseJson(`[${text}]`),
    }
    const data = { ...value, raw: new RawJson(text), none: undefined, dated: [new Date(0), Object.create(null)] }
    expect(atOnce(plainValue(data))).toEqual(asPython(writeJson(data)))
  }
})

it("rejects values that are not plain data", () => {
  for (const value of [Number.NaN, [undefined], { a: Symbol("a") }, [new Map()]])
    expect(() => atOnce(plainValue(value))).toThrow(/plain data only/)
})

it("pauses between the parts of a list", () => {
  const pieces = plainValue(Array(1000).fill({ content: "a" }))
  let count = 0
  while (!pieces.next().done) count++
  expect(count).toBeGreaterThanOrEqual(1000)
})
