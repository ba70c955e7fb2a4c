import { describe, expect, it } from "vitest"
import { policyLoss, type SurrogateInput, type SurrogateOptions } from "../../src/kernels/policy-loss.ts"
import { native } from "../../src/native/native.ts"
import { Random } from "../../src/util/random.ts"
import { badArgument } from "./bad-argument.ts"

describe("policyLoss", () => {
  /** One row of tokens with these ratios and this advantage. */
  function row(ratios: readonly number[], advantage: number, more: Partial<SurrogateInput> = {}): SurrogateInput {
    return {
      logProbs: Float32Array.from(ratios, (ratio) => Math.log(ratio) - 1),
      oldLogProbs: Float32Array.from(ratios, () => -1),
      advantages: Float32Array.from(ratios, () => advantage),
      mask: Float32Array.from(ratios, () => 1),
      lengths: Int32Array.of(ratios.length),
      ...more,
    }
  }
  const close = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 5))

  it("raises the probability of good tokens, up to the clip", () => {
    const report = policyLoss(row([0.5, 1, 1.1, 1.3], 2))
    expect([...report.gradient]).toEqual(close([-0.25, -0.5, -0.55, 0]))
    expect(report.loss).toBeCloseTo((-2 * (0.5 + 1 + 1.1 + 1.2)) / 4, 6)
    expect(report).toMatchObject({ clipFraction: 0.25, dualClipFraction: 0, kl: 0 })
    expect(report.ratio).toBeCloseTo(3.9 / 4, 6)
    expect(report.policyKl).toBeCloseTo(-Math.log(0.5 * 1.1 * 1.3) / 4, 6)
  })

  it("lowers the probability of bad ones, down to the clip, and up to the dual clip", () => {
    const report = policyLoss(row([0.5, 1, 2, 5], -2))
    expect([...report.gradient]).toEqual(close([0, 0.5, 1, 0]))
    expect(report.loss).toBeCloseTo((2 * (0.8 + 1 + 2 + 3)) / 4, 6)
    expect(report).toMatchObject({ clipFraction: 0.25, dualClipFraction: 0.25 })
    const open = policyLoss(row([0.5, 1, 2, 5], -2), { clipDual: Number.POSITIVE_INFINITY })
    expect([...open.gradient]).toEqual(close([0, 0.5, 1, 2.5]))
  })

  it("supports a higher upper clip bound", () => {
    const input = row([1.25, 1.3], 1)
    expect([...policyLoss(input).gradient]).toEqual([0, 0])
    expect([...policyLoss(input, { clipHigh: 0.28 }).gradient]).toEqual(close([-0.625, 0]))
  })

  it("never looks at a token that is masked", () => {
    const mask = Float32Array.of(0, 1, 0)
    const broken = row([1, 1.1, 1], 2, { mask })
    broken.logProbs[0] = NaN
    broken.advantages[2] = Infinity
    const report = policyLoss(broken)
    expect([...report.gradient]).toEqual(close([0, -2.2, 0]))
    expect(report.loss).toBeCloseTo(-2.2, 5)
  })

  it("is 0 without active tokens", () => {
    const report = policyLoss(row([1, 2], 1, { mask: new Float32Array(2) }))
    expect(report).toMatchObject({ loss: 0, ratio: 0, policyKl: 0, clipFraction: 0 })
    expect([...report.gradient]).toEqual([0, 0])
  })

  it("stays finite however far the policy has moved", () => {
    const far = row([1, 1], -1, { logProbs: Float32Array.of(-1e4, 0), oldLogProbs: Float32Array.of(0, -1e4) })
    const referenceLogProbs = Float32Array.of(0, -1e4)
    for (const klEstimator of ["k1", "k2", "k3", "abs", "k1+", "k3+"] as const) {
      const options = { klWeight: 0.1, klEstimator, clipDual: Number.POSITIVE_INFINITY }
      const { loss, gradient } = policyLoss({ ...far, referenceLogProbs }, options)
      expect([loss, ...gradient].every(Number.isFinite)).toBe(true)
    }
  })

  it("weights rows as the aggregation defines", () => {
    // Losses of -1 a token; a row of one token and one of three, of which one is masked.
    const input: SurrogateInput = {
      ...row([1, 1, 1, 1], 1),
      advantages: Float32Array.of(4, 1, 1, 9),
      mask: Float32Array.of(1, 1, 1, 0),
      lengths: Int32Array.of(1, 3),
    }
    const weights = (aggregation: NonNullable<SurrogateOptions["aggregation"]>, fixedLength?: number) => {
      const advantages = Float32Array.of(1, 1, 1, 9)
      return [...policyLoss({ ...input, advantages }, { aggregation, fixedLength }).gradient].map((g) => -g)
    }
    expect(weights("token-mean")).toEqual(close([1 / 3, 1 / 3, 1 / 3, 0]))
    expect(weights("token-sum")).toEqual(close([1, 1, 1, 0]))
    expect(weights("sequence-mean-fixed-length", 5)).toEqual(close([1 / 10, 1 / 10, 1 / 10, 0]))
    expect(weights("sequence-mean-token-sum")).toEqual(close([1 / 2, 1 / 2, 1 / 2, 0]))
    expect(weights("sequence-mean-token-mean")).toEqual(close([1 / 2, 1 / 4, 1 / 4, 0]))
    expect(weights("sequence-mean-token-sum-norm")).toEqual(close([1 / 3, 1 / 3, 1 / 3, 0]))
    expect(policyLoss(input, { aggregation: "sequence-mean-token-mean" }).loss).toBeCloseTo(-(4 + 1) / 2, 6)
  })

  it("supports one ratio per row, its geometric mean", () => {
    const report = policyLoss(row([2, 0.5], 1), { importanceSamplingLevel: "sequence" })
    expect(report.loss).toBeCloseTo(-1, 6)
    expect([...report.gradient]).toEqual(close([-0.5, -0.5]))
  })

  it("has the gradient that its differences show", () => {
    const random = new Random(8)
    const tokens = 40
    // Ratios of a quarter step, which keeps them away from every bound.
    const floats = (next: () => number) => Float32Array.from({ length: tokens }, next)
    const input: SurrogateInput = {
      logProbs: floats(() => -2 + 0.25 * random.below(9) - 0.1),
      oldLogProbs: floats(() => -1),
      advantages: floats(() => random.below(5) - 2),
      mask: floats(() => random.below(4) && 1),
      lengths: Int32Array.of(13, 0, 27),
      referenceLogProbs: floats(() => -2 * random.uniform()),
    }
    for (const klEstimator of ["k1", "k2", "k3", "abs"] as const) {
      const options = { klWeight: 0.3, klEstimator, aggregation: "sequence-mean-token-mean" } as const
      const { gradient } = policyLoss(input, options)
      for (let token = 0; token < tokens; token++) {
        const step = 2 ** -8
        const at = (move: number) => {
          const logProbs = Float32Array.from(input.logProbs)
          logProbs[token]! += move
          return policyLoss({ ...input, logProbs }, options).loss
        }
        expect((at(step) - at(-step)) / (2 * step)).toBeCloseTo(gradient[token]!, 4)
      }
    }
  })

  it.skipIf(!native().deviceReport().unavailable)("explains why no GPU can be used", () => {
    const { message } = native().deviceReport().unavailable!
    const call = () => policyLoss(row([1, 1], 1), { device: "cuda" })
    expect(call).toThrow(expect.objectContaining({ code: "DEVICE_UNAVAILABLE", message }))
  })

  it.each<[string, Partial<SurrogateInput>, SurrogateOptions, RegExp]>([
    ["arrays of another length", { mask: new Float32Array(1) }, {}, /mask must be as long as logProbs \(2\)/],
    ["rows that do not sum up", { lengths: Int32Array.of(1) }, {}, /summing to 2, not 1/],
    ["rows of negative length", { lengths: Int32Array.of(3, -1) }, {}, /lengths must be those of the sequences/],
    ["a KL weight without a reference", {}, { klWeight: 1 }, /a klWeight needs referenceLogProbs/],
    ["an unknown aggregation", {}, { aggregation: "sum" as "token-mean" }, /aggregation must be .*-norm", not "sum"/],
    ["a fixed length that is not given", {}, { aggregation: "sequence-mean-fixed-length" }, /needs fixedLength/],
    [
      "an unknown ratio",
      {},
      { importanceSamplingLevel: "row" as "token" },
      /importanceSamplingLevel must be "token" or "sequence", not "row"/,
    ],
    ["a clip of NaN", {}, { clipLow: NaN }, /clipLow must be a number from 0 to 1, not NaN/],
    ["an unknown device", {}, { device: "tpu" as "cpu" }, /device is "tpu"; it must be/],
  ])("rejects %s", (_, input, options, message) => {
    expect(() => policyLoss(row([1, 1], 1, input), options)).toThrow(badArgument(message))
  })
})
