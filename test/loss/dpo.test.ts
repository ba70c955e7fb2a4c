import { describe, expect, it } from "vitest"
import { type DpoOptions, dpo } from "../../src/loss/dpo.ts"
import { lossInput } from "../../src/loss/loss-input.ts"
import type { LossInput } from "../../src/loss/token-loss.ts"
import { Random } from "../../src/util/random.ts"
import { badArgument } from "../kernels/bad-argument.ts"
import { now, randomRows, slopes } from "./inputs.ts"

/** Six rows of one to three replies as three pairs, in exact numbers. */
function paired(seed: number, weighted = false): LossInput {
  const random = new Random(seed)
  const { rows, statistics } = randomRows(random)
  const known = rows.map((row, index) => ({
    ...row,
    segments: row.segments.map((segment) => ({
      ...segment,
      task: index % 3,
      advantage: index < 3 ? 1 : -1,
      ...(weighted && { weights: Float32Array.from({ length: segment.length }, () => 0.1 + random.uniform()) }),
    })),
  }))
  const input = lossInput(known, statistics, { ...now, needs: ["reference"], imitation: true })
  const referenceLogProbs = Float64Array.from(input.referenceLogProbs!)
  return { ...input, referenceLogProbs, logProbs: referenceLogProbs.map((value) => value - 0.4 + random.uniform()) }
}

/** The definition, a token at a time. */
function defined(input: LossInput, { beta = 0.1, objective, labelSmoothing = 0, average }: DpoOptions) {
  const b = beta as number
  const pairs = [0, 1, 2].map((task) => {
    const side = (sign: number) => {
      let [sum, count] = [0, 0]
      for (const [segment, its] of input.tasks.entries())
        for (let t = input.segmentOffsets[segment]!; t < input.segmentOffsets[segment + 1]!; t++) {
          if (its !== task || Math.sign(input.advantages[t]!) !== sign) continue
          sum += (input.weights?.[t] ?? 1) * (input.logProbs[t]! - input.referenceLogProbs![t]!)
          count++
        }
      return average ? sum / count : sum
    }
    return { w: side(1), l: side(-1) }
  })
  const sigma = (x: number) => 1 / (1 + Math.exp(-x))
  const mean = (of: (pair: { w: number; l: number }) => number) => pairs.reduce((sum, pair) => sum + of(pair), 0) / 3
  const value = ({ w, l }: { w: number; l: number }) =>
    objective === "ipo"
      ? (w - l - 1 / (2 * b)) ** 2
      : -(1 - labelSmoothing) * Math.log(sigma(b * (w - l))) - labelSmoothing * Math.log(sigma(b * (l - w)))
  return {
    loss: mean(value),
    metrics: {
      "preference/accuracy": mean(({ w, l }) => Number(w > l)),
      "preference/margin": mean(({ w, l }) => b * (w - l)),
      "preference/chosen": mean(({ w }) => b * w),
      "preference/rejected": mean(({ l }) => b * l),
    },
  }
}

describe.each<DpoOptions>([
  {},
  { beta: 0.7, labelSmoothing: 0.2 },
  { average: true },
  { objective: "ipo", beta: 0.3 },
  { objective: "ipo", average: true },
])("dpo of %o", (options) => {
  it.each([false, true])("matches its definition, and its gradient finite differences (weights: %s)", (weighted) => {
    for (const seed of [1, 2, 3]) {
      const input = paired(seed, weighted)
      const { loss, gradient, metrics } = dpo(options).evaluate(input)
      const wanted = defined(input, options)
      expect(loss).toBeCloseTo(wanted.loss, 12)
      for (const [name, value] of Object.entries(wanted.metrics)) expect(metrics![name], name).toBeCloseTo(value, 12)
      for (const [t, slope] of slopes(input, (moved) => dpo(options).evaluate(moved).loss).entries())
        expect(gradient[t]).toBeCloseTo(slope, 5)
      expect(gradient.some((slope) => slope !== 0)).toBe(true)
    }
  })
})

it("is log 2 at the reference policy for any preference, and stays finite far from it", () => {
  const input = paired(1)
  const start = dpo().evaluate({ ...input, logProbs: input.referenceLogProbs! })
  expect(start.loss).toBeCloseTo(Math.LN2, 12)
  expect(start.metrics).toMatchObject({ "preference/accuracy": 0, "preference/margin": 0 })
  const far = dpo({ beta: 1 }).evaluate({ ...input, logProbs: input.advantages.map((a) => -1e6 * a) })
  expect(far.loss).toBeGreaterThan(1e5)
  expect(far.gradient.every(Number.isFinite)).toBe(true)
})

it("supports a schedule of beta", () => {
  const input = paired(2)
  const beta = { from: 0.1, to: 0.4, over: 6 } // 0.25 at iteration 3
  expect(dpo({ beta }).evaluate(input).loss).toBe(dpo({ beta: 0.25 }).evaluate(input).loss)
})

it("rejects rows that are not pairs, and invalid options", () => {
  const input = paired(1)
  const alone = { ...input, advantages: input.advantages.map(() => 1) }
  expect(() => dpo().evaluate(alone)).toThrow(
    badArgument(/dpo needs preference pairs: give data with chosen and rejected/),
  )
  expect(() => dpo({ objective: "ipo", labelSmoothing: 0.1 })).toThrow(
    badArgument(/labelSmoothing applies to the objective/),
  )
  expect(() => dpo({ beta: 0 })).toThrow(badArgument(/beta must be above 0/))
  expect(() => dpo({ labelSmoothing: 0.5 })).toThrow(badArgument(/labelSmoothing must be/))
})
