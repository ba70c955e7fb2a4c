import { existsSync, readFileSync } from "node:fs"
import { gunzipSync } from "node:zlib"
import { describe, expect, expectTypeOf, it } from "vitest"
import { quickRatio, realQuickRatio, similarityRatio } from "../../src/credit/similarity.ts"
import { Random } from "../../src/util/random.ts"

describe("similarityRatio", () => {
  it("is CPython's SequenceMatcher.ratio", () => {
    const cases: [string, string, number][] = [
      ["", "", 1],
      ["abc", "", 0],
      ["abc", "abc", 1],
      ["abxcd", "abcd", 8 / 9],
      ["qabxcd", "abycdf", 8 / 12],
      ["private", "pirate", 10 / 13],
    ]
    for (const [a, b, ratio] of cases) expect(similarityRatio(a, b)).toBe(ratio)
    expectTypeOf(similarityRatio).parameter(2).toEqualTypeOf<{ autojunk?: boolean } | undefined>()
  })

  it("depends on the order of its texts", () => {
    expect(similarityRatio("tide", "diet")).toBe(0.25)
    expect(similarityRatio("diet", "tide")).toBe(0.5)
  })

  it("counts code points, not UTF-16 units", () => {
    expect(similarityRatio("😀ab", "ab😀")).toBe(4 / 6)
    expect(similarityRatio("naïve 😀", "naive 😀")).toBe(12 / 14)
    expect(similarityRatio("😀", "😁")).toBe(0) // equal first units
  })

  it("starts no match at over-frequent characters of a text of 200 characters or more", () => {
    const digits = "0123456789"
    expect(similarityRatio(`${digits.repeat(20)}?`, `!${digits.repeat(20)}`)).toBe(0)
    expect(similarityRatio(`${digits.repeat(20)}?`, `!${digits.repeat(20)}`, { autojunk: false })).toBe(400 / 402)
    expect(similarityRatio(`${digits.repeat(19)}?`, `!${digits.repeat(19)}`)).toBe(380 / 382)
  })

  it("lets over-frequent characters extend a match, also the empty one", () => {
    expect(similarityRatio("a".repeat(150), "a".repeat(200))).toBe(300 / 350)
    expect(similarityRatio(`b${"a".repeat(199)}`, `${"a".repeat(199)}b`)).toBe(2 / 400)
  })

  it("stays below its quick bounds, and is 1 for equal texts", () => {
    const random = new Random(3)
    const text = (length: number) => Array.from({ length }, () => "ab cdeé😀"[random.below(7)]).join("")
    for (let i = 0; i < 200; i++) {
      const [a, b] = [text(random.below(260)), text(random.below(260))]
      for (const autojunk of [true, false]) {
        const ratio = similarityRatio(a, b, { autojunk })
        expect(ratio).toBeLessThanOrEqual(quickRatio(a, b))
        expect(similarityRatio(a, a, { autojunk })).toBe(1)
      }
      expect(quickRatio(a, b)).toBeLessThanOrEqual(realQuickRatio(a, b))
    }
  })
})

const recorded = new URL("../../../shared/data/search/difflib_ratios.jsonl.gz", import.meta.url)

describe.skipIf(!existsSync(recorded))("ratios recorded from CPython (skipped where ../shared is absent)", () => {
  it("are all reproduced to the last bit", () => {
    const pairs = gunzipSync(readFileSync(recorded)).toString().trim().split("\n")
    expect(pairs).toHaveLength(120)
    for (const line of pairs) {
      const { a, b, ratio } = JSON.parse(line) as { a: string; b: string; ratio: number }
      expect(similarityRatio(a, b)).toBe(ratio)
    }
  })
})
