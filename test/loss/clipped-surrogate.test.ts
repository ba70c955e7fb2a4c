import { describe, expect, it } from "vitest"
import { clippedSurrogate } from "../../src/loss/clipped-surrogate.ts"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import { crossEntropy } from "../../src/loss/cross-entropy.ts"
import { lossInput } from "../../src/loss/loss-input.ts"
import type { LossInput, TokenLoss } from "../../src/loss/token-loss.ts"
import { Random } from "../../src/util/random.ts"
import { badArgument } from "../kernels/bad-argument.ts"
import { now, ofRatios, randomRows, row } from "./inputs.ts"

const close = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 5))

describe("clippedSurrogate", () => {
  it("increases positive advantages up to the clip, negative ones down to it and up to the dual clip", () => {
    const good = clippedSurrogate().evaluate(ofRatios([{ ratios: [0.5, 1, 1.1, 1.3], advantage: 2 }]))
    expect([...good.gradient]).toEqual(close([-0.25, -0.5, -0.55, 0]))
    expect(good.loss).toBeCloseTo((-2 * (0.5 + 1 + 1.1 + 1.2)) / 4, 6)
    expect(good.metrics).toMatchObject({ "policy/clip-fraction": 0.25, "policy/ratio": expect.closeTo(3.9 / 4, 6) })
    const bad = clippedSurrogate().evaluate(ofRatios([{ ratios: [0.5, 1, 2, 5], advantage: -2 }]))
    expect([...bad.gradient]).toEqual(close([0, 0.5, 1, 0]))
    expect(bad.metrics).toMatchObject({ "policy/clip-fraction": 0.25, "policy/dual-clip-fraction": 0.25 })
  })

  it("uses one ratio per sequence: a span, or a row of spans", () => {
    const two = row(
      { length: 2, advantage: 1, logProbs: Float32Array.of(-1, -1) },
      { length: 1, advantage: 1, logProbs: Float32Array.of(-1) },
    )
    const statistics = { logProbs: Float32Array.from([1.1, 0.9, 1.2], (ratio) => Math.log(ratio) - 1) }
    const gspo = clippedSurrogate({ importanceSamplingLevel: "sequence", clipHigh: 9 })
    const ofSegments = gspo.evaluate(lossInput([two], statistics, now))
    expect([...ofSegments.gradient]).toEqual(close([-Math.sqrt(0.99) / 3, -Math.sqrt(0.99) / 3, -0.4]))
    const ofRow = gspo.evaluate(lossInput([two], statistics, { ...now, unit: "conversation" }))
    expect([...ofRow.gradient]).toEqual(close(Array(3).fill(-Math.cbrt(1.188) / 3)))
  })

  it("applies clip factors of spans and weights of tokens from the credit", () => {
    const wide = ofRatios([
      { ratios: [1.3], advantage: 1, more: { clipScale: 2 } },
      { ratios: [1.3], advantage: 1 },
      { ratios: [1.1, 1.1], advantage: 1, more: { weights: Float32Array.of(0.5, 3) } },
    ])
    const { gradient, loss, metrics } = clippedSurrogate().evaluate(wide)
    expect([...gradient]).toEqual(close([-1.3 / 4, 0, -0.55 / 4, -3.3 / 4]))
    expect(loss).toBeCloseTo(-(1.3 + 1.2 + 0.55 + 3.3) / 4, 6)
    expect(metrics!["policy/clip-fraction"]).toBe(0.25)
  })

  it("accepts per-token advantages", () => {
    const input = ofRatios([{ ratios: [1, 1], advantage: 0, more: { advantage: Float32Array.of(3, -1) } }])
    expect([...clippedSurrogate().evaluate(input).gradient]).toEqual(close([-1.5, 0.5]))
  })

  it("stays finite for any distance of the policy, without a gradient far out", () => {
    const far = ofRatios([{ ratios: [1, 1], advantage: -1 }])
    far.logProbs.set([-1e4, 1e4])
    const { loss, gradient } = clippedSurrogate({ clipDual: Infinity }).evaluate(far)
    expect(Number.isFinite(loss)).toBe(true)
    expect([...gradient]).toEqual([0, 0])
  })

  it("is 0 for an empty batch", () => {
    const { loss, gradient, metrics } = clippedSurrogate().evaluate(
      lossInput([], { logProbs: new Float32Array(0) }, now),
    )
    expect([loss, gradient.length, ...Object.values(metrics!)]).toEqual([0, 0, 0, 0, expect.closeTo(0), 0])
  })

  it("rejects invalid options", () => {
    expect(() => clippedSurrogate({ clipLow: NaN })).toThrow(
      badArgument(/clipLow must be a number from 0 to 1, not NaN/),
    )
    expect(() => clippedSurrogate({ clipDual: 1 })).toThrow(badArgument(/clipDual must be a number above 1.* not 1/))
    expect(() => clippedSurrogate({ importanceSamplingLevel: "row" as "token" })).toThrow(
      badArgument(/importanceSamplingLevel must be "token" or "sequence", not "row"/),
    )
  })
})

describe("crossEntropy", () => {
  it("is the negative mean log-probability, with equal gradients for all tokens", () => {
    const completions = row({ length: 4 })
    const input = lossInput([completions], { logProbs: Float32Array.of(-1, -2, -3, -4) }, { ...now, imitation: true })
    const { loss, gradient } = crossEntropy().evaluate(input)
    expect(loss).toBe(2.5)
    expect([...gradient]).toEqual([-0.25, -0.25, -0.25, -0.25])
    expect(crossEntropy().native!(now.progress)).toEqual({ kind: "cross-entropy" })
  })
})

describe("gradients", () => {
  /** Σ over tokens of the difference that a small move of each makes; away from the bounds, if there is no derivative. */
  function expectSlopes(loss: TokenLoss, input: LossInput): void {
    const { gradient, entropyGradient } = loss.evaluate(input)
    const step = 2 ** -9
    const slope = (column: "logProbs" | "entropies", t: number) => {
      const at = (move: number) => {
        const moved = Float32Array.from(input[column]!)
        moved[t]! += move
        return loss.evaluate({ ...input, [column]: moved }).loss
      }
      return (at(step) - at(-step)) / (2 * step)
    }
    for (let t = 0; t < input.tokens; t++) {
      expect(slope("logProbs", t)).toBeCloseTo(gradient[t]!, 5)
      if (input.entropies) expect(slope("entropies", t)).toBeCloseTo(entropyGradient![t]!, 5)
    }
  }

  it.each(["k1", "k2", "k3", "abs"] as const)("are what differences show, with all terms and %s", (klEstimator) => {
    const random = new Random(11)
    const { rows, statistics } = randomRows(random)
    for (const { segments } of rows)
      for (const segment of segments)
        Object.assign(segment, {
          weights: Float32Array.from({ length: segment.length }, () => 2 * random.uniform()),
          clipScale: 1 + random.uniform(),
          advantage: Float32Array.from({ length: segment.length }, () => random.below(5) - 2),
        })
    // Ratios of a quarter step, away from every bound, whose widths are made so.
    const old = rows.flatMap(({ segments }) => segments.flatMap((segment) => [...segment.logProbs!]))
    statistics.logProbs.set(old.map((value) => value + 0.25 * (random.below(9) - 4) + 0.03))
    const aggregation = "sequence-mean-token-mean"
    const input = lossInput(rows, statistics, { ...now, needs: ["entropy"] })
    const loss = composeLoss(clippedSurrogate(), { klWeight: 0.3, klEstimator, entropyWeight: 0.2, aggregation })
    expectSlopes(loss, input)
  })
})
