import { describe, expect, expectTypeOf, it } from "vitest"
import { groupByAnchor, groupBySimilarity } from "../../src/credit/anchors.ts"
import { discountedReturns } from "../../src/credit/returns.ts"
import { similarityRatio } from "../../src/credit/similarity.ts"
import { Random } from "../../src/util/random.ts"
import { expectClose } from "./close.ts"

describe("groupByAnchor", () => {
  it("numbers groups in order of first occurrence", () => {
    expect([...groupByAnchor([0, 0, 0, 0, 0], ["b", "a", "b", "c", "a"])]).toEqual([0, 1, 0, 2, 1])
    expectTypeOf(groupByAnchor).returns.toEqualTypeOf<Int32Array>()
  })

  it("separates equal anchors of different tasks", () => {
    expect([...groupByAnchor(["x", "y", "x", "y"], ["s", "s", "s", "t"])]).toEqual([0, 1, 0, 2])
    expect([...groupByAnchor([1, "1"], ["s", "s"])]).toEqual([0, 1])
  })

  it("distinguishes pairs whose concatenations are equal", () => {
    expect([...groupByAnchor(["a", "ab", "a b", "a"], ["bc", "c", "c", "b c"])]).toEqual([0, 1, 2, 3])
    expect([...groupByAnchor(["", "__proto__"], ["__proto__", ""])]).toEqual([0, 1])
  })

  it("rejects arrays of different lengths", () => {
    expect(() => groupByAnchor([0], [])).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }))
  })
})

describe("groupBySimilarity", () => {
  it("joins the first group whose first member is similar enough, not the most similar", () => {
    // Ratios: bbbb-aabb 0.5; aaab-aabb 0.75; abbb-aabb 0.75 and abbb-bbbb 0.75.
    const anchors = ["aabb", "bbbb", "aaab", "abbb"]
    expect([...groupBySimilarity([0, 0, 0, 0], anchors, { threshold: 0.6 })]).toEqual([0, 1, 0, 0])
    const reversed = ["bbbb", "aabb", "aaab", "abbb"]
    expect([...groupBySimilarity([0, 0, 0, 0], reversed, { threshold: 0.6 })]).toEqual([0, 1, 1, 0])
  })

  it("compares with the first member only, so similarity is not transitive", () => {
    expect([...groupBySimilarity([0, 0, 0], ["aaaa", "aaab", "aabb"], { threshold: 0.75 })]).toEqual([0, 0, 1])
  })

  it("never crosses tasks", () => {
    expect([...groupBySimilarity(["x", "y", "x"], ["same", "same", "same!"], { threshold: 0.8 })]).toEqual([0, 1, 0])
  })

  it("equals exact grouping at threshold 1", () => {
    const anchors = ["ab", "ba", "ab", "", "abc", ""]
    const tasks = anchors.map(() => 0)
    expect(groupBySimilarity(tasks, anchors, { threshold: 1 })).toEqual(groupByAnchor(tasks, anchors))
  })

  it("equals the comparison of all anchors in full", () => {
    const random = new Random(7)
    const texts = Array.from({ length: 3 }, () => Array.from({ length: 240 }, () => "abcdefgh "[random.below(9)]!))
    for (const threshold of [0.3, 0.8, 0.9, 0.97])
      for (const autojunk of [true, false]) {
        const anchors = Array.from({ length: 20 }, () => {
          const text = [...texts[random.below(3)]!]
          for (let edits = random.below(12); edits > 0; edits--) text[random.below(240)] = "?"
          return text.join("")
        })
        const founders: string[] = []
        const expected = anchors.map((anchor) => {
          const group = founders.findIndex((founder) => similarityRatio(anchor, founder, { autojunk }) >= threshold)
          return group >= 0 ? group : founders.push(anchor) - 1
        })
        expect([...groupBySimilarity(Array(20).fill("t"), anchors, { threshold, autojunk })]).toEqual(expected)
      }
  })
})

describe("discountedReturns", () => {
  it("sums later rewards, discounted by gamma per step", () => {
    expectClose(discountedReturns([1, 2, 4], 0.5), [3, 4, 4])
    expectClose(discountedReturns(new Float64Array([0, 0, 10]), 0.95), [9.025, 9.5, 10])
    expectClose(discountedReturns([1, -1, 1], 1), [1, 0, 1])
  })

  it("separates interleaved episodes", () => {
    expectClose(discountedReturns([0, 5, 8, 6], 0.5, ["a", "b", "a", "b"]), [4, 8, 8, 6])
  })

  it("returns nothing for no steps and rejects invalid input", () => {
    expect(discountedReturns([], 0.9)).toHaveLength(0)
    expect(() => discountedReturns([1], 0)).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }))
    expect(() => discountedReturns([1], 0.9, [])).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }))
  })
})
