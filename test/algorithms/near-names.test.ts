import { describe, expect, it } from "vitest"
import { resolveConfig } from "../../src/cli/config/resolve.ts"
import { editDistance } from "../../src/util/edit-distance.ts"

const least = "model: m\nenvironment: { name: sokoban }\n"

describe("a misspelt name", () => {
  it.each([
    ["training.estimator.name", "gipgo", "gigpo"],
    ["training.estimator", "gipgo", "gigpo"],
    ["training.estimator.name", "hpgo", "hgpo"],
    ["training.estimator.name", "DrGRPO", "dr-grpo"],
    ["training.loss.name", "spao", "sapo"],
    ["training.loss.name", "clipped-surogate", "clipped-surrogate"],
    ["training.curriculum.name", "tocd", "tcod"],
    ["sft.loss.name", "dop", "dpo"],
  ])("of %s suggests the closest name: %s, %s", (key, typed, meant) => {
    const message = expect.stringMatching(new RegExp(`not "${typed}"\\. Did you mean ${meant}\\?$`))
    expect(() => resolveConfig(least, [`${key}=${typed}`])).toThrow(
      expect.objectContaining({ code: "BAD_CONFIG", message }),
    )
  })

  it("is as far away as letters have to be typed, or swapped", () => {
    const far = (a: string, b: string) => [editDistance(a, b), editDistance(b, a)]
    expect(far("", "abc")).toEqual([3, 3])
    expect(far("gigpo", "gigpo")).toEqual([0, 0])
    expect(far("gipgo", "gigpo")).toEqual([1, 1])
    expect(far("kitten", "sitting")).toEqual([3, 3])
    expect(far("ca", "abc")).toEqual([3, 3])
    expect(far("abcd", "badc")).toEqual([2, 2])
  })
})
