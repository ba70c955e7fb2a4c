import { describe, expect, it } from "vitest"
import { canonical } from "../../src/json/canonical.ts"
import { canonicalJson, canonicalJsonInPieces, isWhole, mostDigits, wholeNumber } from "../../src/json/numbers.ts"
import { compactJson } from "../../src/json/text.ts"
import { Random } from "../../src/util/random.ts"
import { foreignJson } from "../foreign-json.ts"

it("reads whole numbers of any size, however they are written", () => {
  const whole: readonly (readonly [string, bigint])[] = [
    ...([
      ["0", 0n],
      ["-0", 0n],
      ["0.000", 0n],
      ["0e99999999999", 0n],
      ["7", 7n],
      ["20.0", 20n],
      ["20e-1", 2n],
    ] as const),
    ...([
      ["1.5e1", 15n],
      ["-1E+3", -1000n],
      ["100", 100n],
      ["9223372036854775807", 2n ** 63n - 1n],
    ] as const),
    ["-123456789012345678901234567890", -123456789012345678901234567890n],
    ["1e22", 10n ** 22n],
    [`1e${mostDigits - 1}`, 10n ** BigInt(mostDigits - 1)],
  ]
  for (const [text, value] of whole) expect([wholeNumber(text), isWhole(text)], text).toEqual([value, true])
  for (const text of ["0.5", "1e-07", "1.25e1", "9007199254740993.5", '"1"', "null", "[1]", "true"])
    expect([wholeNumber(text), isWhole(text)], text).toEqual([undefined, false])
  for (const text of [`1e${mostDigits}`, "1e999999999999999999999"])
    expect([wholeNumber(text), isWhole(text)], text).toEqual([undefined, true])
})

it("compares by value: numbers exactly, keys in any order", () => {
  const same = (one: string, other: string) => canonicalJson(one) === canonicalJson(other)
  for (const [one, other] of [
    ["1", "1.0"],
    ["-0", "0"],
    ["1e2", "100"],
    ['{"a": 1, "10": 2.50}', '{"10":2.5,"a":1e0}'],
    ['"\\u0061"', '"a"'],
  ] as const)
    expect(same(one, other), one).toBe(true)
  for (const [one, other] of [
    ["9007199254740993", "9007199254740992"],
    ["1", '"1"'],
    ["[1,2]", "[2,1]"],
    ["0.1", "0.1000000000000000055"],
    ["1e400", "1e401"],
    ['"1e2"', '"100"'],
  ] as const)
    expect(same(one, other), one).toBe(false)
  const plain = '{"b": [1.0, 20e-1, -0, 1e21, 0.1], "a": {"10": "1.0", "2": null}}'
  expect(canonicalJson(plain)).toBe(canonical(JSON.parse(plain)))
  const random = new Random(3)
  for (let i = 0; i < 1000; i++) {
    const { text } = foreignJson(random)
    expect(canonicalJson(compactJson(text))).toBe(canonicalJson(text))
  }
})

describe("a large text in canonical form", () => {
  const names = Array.from({ length: 40_000 }, (_, at) => `${at % 3 === 0 ? "" : "k"}${(at * 7919) % 40_000}`)
  const sorted = (_: string, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : Number(a > b))))
      : part

  it.each<[string, unknown]>([
    ["members", Object.fromEntries(names.map((name, at) => [name, at]))],
    ["numbers", Array.from({ length: 100_000 }, (_, at) => at / 8)],
    ["lists", names.map((name) => [[name], {}, { b: null, a: [] }])],
  ])("is made in pieces, with the members in order: %s", (_, value) => {
    const making = canonicalJsonInPieces(JSON.stringify(value))
    let pieces = 0
    let step = making.next()
    for (; !step.done; step = making.next()) pieces++
    expect(step.value).toBe(JSON.stringify(value, sorted))
    expect(pieces).toBeGreaterThanOrEqual(90)
  })
})
