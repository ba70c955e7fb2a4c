import { describe, expect, it } from "vitest"
import { readOptions } from "../../src/options/read.ts"
import { optimizerFields } from "../../src/training/optimizer.ts"
import { adamwAt, learningRate } from "../../src/training/schedule.ts"

type Options = Partial<Parameters<typeof learningRate>[2]>

const rates = (total: number, options: Options) =>
  Array.from({ length: total }, (_, index) =>
    learningRate(index, total, { warmup: 0, schedule: "constant", learningRate: 8, ...options }),
  )

describe("the learning rate", () => {
  it.each<[string, Options, number[]]>([
    ["stays", {}, [8, 8, 8, 8]],
    ["rises over the warm-up and stays", { warmup: 2 }, [4, 8, 8, 8]],
    ["falls in a line to reach 0 after the last step", { schedule: "linear" }, [8, 6, 4, 2]],
    ["falls as a cosine", { schedule: "cosine" }, [8, 4 + 2 * Math.SQRT2, 4, 4 - 2 * Math.SQRT2]],
    ["rises and falls in a line", { schedule: "linear", warmup: 2 }, [4, 8, 8, 4]],
    ["rises and falls as a cosine", { schedule: "cosine", warmup: 2 }, [4, 8, 8, 4]],
    ["only rises where the warm-up is as long as the run", { schedule: "linear", warmup: 4 }, [2, 4, 6, 8]],
    ["never gets there where the warm-up is longer", { schedule: "cosine", warmup: 8 }, [1, 2, 3, 4]],
  ])("%s", (_, options, expected) => {
    for (const [index, rate] of rates(4, options).entries()) expect(rate).toBeCloseTo(expected[index]!, 12)
  })

  it.each(["constant", "linear", "cosine"] as const)("is never 0, negative or above its peak: %s", (schedule) => {
    for (const total of [1, 2, 7, 100]) {
      for (const warmup of [0, 1, 5, 200]) {
        for (const rate of rates(total, { schedule, warmup })) {
          expect(rate).toBeGreaterThan(0)
          expect(rate).toBeLessThanOrEqual(8)
        }
      }
    }
  })
})

it("warms up over three iterations by default, for any number of iterations", () => {
  const optimizer = { ...readOptions("optimizer", {}, optimizerFields), learningRate: 8 }
  const rate = (index: number, changes = {}) =>
    adamwAt({ ...optimizer, ...changes }, { index, total: 200, perIteration: 5 }).learningRate
  expect([2, 5, 14, 15, 199].map((index) => rate(index))).toEqual([1.6, 3.2, 8, 8, 8])
  expect(rate(0, { warmup: 0 })).toBe(8)
})
