import { expect, it } from "vitest"
import { anyObject, anyValue, list, string } from "../../src/grammar/json.ts"
import { number } from "../../src/grammar/numbers.ts"
import { Random } from "../../src/util/random.ts"
import { draw, holder } from "./texts.ts"

const values: readonly unknown[] = [
  ...[null, true, 0, -1.5e-7, "", 'say "a\\b"\n\t', "é€😀\u2028", "\u0001", [], {}, [1, [2, []]]],
  ...[{ a: { b: [null, { c: "d" }] }, "": 1 }, [[[[[[[[]]]]]]]]],
]

it("holds what JSON.stringify writes, compact or with a space behind colons and commas", () => {
  const holds = holder(anyValue)
  for (const value of values) {
    const text = JSON.stringify(value)
    expect(holds(text), text).toBe(true)
  }
  expect(holds('{"a": 1, "b": [1, 2]}')).toBe(true)
})

it("holds nothing that JSON.parse rejects, and no half pairs of surrogates", () => {
  const holds = holder(anyValue)
  for (const text of [
    "",
    "{",
    '{"a"}',
    "[1,]",
    "{,}",
    "'a'",
    '"\n"',
    '"\\x"',
    '"\\u12"',
    "nul",
    "tru",
    '{"a":1',
    "[1 2]",
    '"',
    '"a',
  ])
    expect(holds(text), text).toBe(false)
  for (const text of ['"\\ud800"', '"\\uDfFf"']) expect(holds(text), text).toBe(false)
  for (const text of ['"\\u00e9"', '"\\ud7ff"', '"\\uE000"']) expect(holds(text), text).toBe(true)
  const random = new Random(1)
  let long = 0
  for (let i = 0; i < 300; i++) {
    const text = draw(anyValue, (n) => random.below(n))
    if (text === undefined) continue
    JSON.parse(text)
    if (text.length > 10) long++
  }
  expect(long).toBeGreaterThan(20)
})

it("counts characters and items", () => {
  const two = holder(string(2, 3))
  expect(['"a"', '"ab"', '"a\\n"', '"😀😀"', '"abc"', '"abcd"'].map(two)).toEqual([
    false,
    true,
    true,
    true,
    true,
    false,
  ])
  const items = holder(list(number, 1, 2))
  expect(["[]", "[1]", "[1,2]", "[1, 2]", "[1,2,3]"].map(items)).toEqual([false, true, true, true, false])
  expect(["[]", "[1]"].map(holder(list(number, 0, 0)))).toEqual([true, false])
  expect(["[]", "[1,2,3]"].map(holder(list(number, 2)))).toEqual([false, true])
  expect(["{}", "[]", "1"].map(holder(anyObject))).toEqual([true, false, false])
})
