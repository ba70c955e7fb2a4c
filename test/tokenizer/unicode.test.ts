import { expect, it } from "vitest"
import { comparedSource, comparison } from "../../src/tokenizer/bpe/unicode.ts"
import { categoryNames } from "../../src/tokenizer/bpe/unicode-tables.ts"

const names = [...categoryNames, ..."LMNPSZC"]

it("finds all differences from the engine's Unicode version among the code points that have changed", () => {
  const [short, complete] = [comparison(process.versions.unicode), comparison(undefined)]
  for (const name of names) expect(comparedSource(name, short), name).toBe(comparedSource(name, complete))
})

it("compares all code points for a Unicode version that it does not know", () => {
  const lengthOf = (unicode: string) => comparison(unicode).ranges.reduce((sum, { text }) => sum + text.length, 0)
  expect(lengthOf("18.0")).toBe(lengthOf("13.0"))
  expect(lengthOf("18.0")).toBeGreaterThan(300_000)
  expect(lengthOf("15.1")).toBeLessThan(40_000)
})

it("gives classes with exactly the members of the table", () => {
  const source = comparedSource("Lu", comparison(process.versions.unicode))
  const pattern = new RegExp(`^${source}$`, "v")
  expect(["A", "Ω", "𝔸"].map((character) => pattern.test(character))).toEqual([true, true, true])
  // An upper-case letter of Unicode 17, after the table's version 16.
  expect(["a", "1", "\ua7ce"].map((character) => pattern.test(character))).toEqual([false, false, false])
})
