import { describe, expect, it } from "vitest"
import { chord, chordWeight } from "../../src/loss/chord.ts"
import { clippedSurrogate } from "../../src/loss/clipped-surrogate.ts"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import type { LossInput } from "../../src/loss/token-loss.ts"
import { close, exactInput, ofRatios, slopes } from "./inputs.ts"

/** Every other segment is the expert's. */
function mixedInput(): LossInput {
  const input = exactInput(11, "completion", true)
  return { ...input, offPolicy: Uint8Array.from(input.clipScale!, (_, segment) => segment % 2) }
}

/** The definition, token by token in float64. φ is taken from `fixed`. */
function defined(input: LossInput, mu: number, phi: boolean, fixed: LossInput): number {
  const { tokens, segmentOffsets, logProbs, oldLogProbs, advantages, weights, clipScale, offPolicy } = input
  const [sums, counts] = [
    [0, 0],
    [0, 0],
  ]
  for (let t = 0; t < tokens; t++) {
    const segment = segmentOffsets.findLastIndex((start) => start <= t)
    const kind = offPolicy![segment]!
    counts[kind]!++
    if (kind === 1) {
      const p = Math.exp(fixed.logProbs[t]!)
      sums[1]! -= (phi ? p * (1 - p) : 1) * logProbs[t]!
      continue
    }
    const [A, r, width] = [advantages[t]!, Math.exp(logProbs[t]! - oldLogProbs[t]!), clipScale![segment]!]
    const held = Math.min(Math.max(r, 1 - 0.1 * width), 1 + 0.2 * width)
    const value = Math.max(-A * r, -A * held)
    sums[0]! += weights![t]! * (A < 0 ? Math.min(value, -1.3 * A) : value)
  }
  return ((1 - mu) * sums[0]!) / counts[0]! + (mu * sums[1]!) / counts[1]!
}

const clip = { clipLow: 0.1, clipHigh: 0.2, clipDual: 1.3 }

describe("chord", () => {
  it.each([true, false])("matches its definition, and its gradient finite differences, with phi %s", (phi) => {
    const input = mixedInput()
    const mu = 0.3
    const { loss, gradient, metrics } = composeLoss(chord({ ...clip, peak: mu, valley: mu, phi })).evaluate(input)
    expect(loss).toBeCloseTo(defined(input, mu, phi, input), 10)
    const expected = slopes(input, (moved) => defined(moved, mu, phi, input))
    expect([...gradient]).toEqual(close(expected, 5))
    expect(metrics).toMatchObject({ "policy/expert-weight": mu })
  })

  it("has a mean of its own for each kind of sequences with other aggregations", () => {
    const input = ofRatios([
      { ratios: [1, 1], advantage: 2 },
      { ratios: [1], advantage: -1 },
      { ratios: [1, 1, 1], advantage: 0, more: { offPolicy: true } },
    ])
    const loss = composeLoss(chord({ peak: 0.25, valley: 0.25 }), { aggregation: "sequence-mean-token-mean" })
    const phi = Math.exp(-1) * (1 - Math.exp(-1))
    const imitation = -(0.25 * phi) / 3
    expect([...loss.evaluate(input).gradient]).toEqual(
      close([(-0.75 * 2) / 4, (-0.75 * 2) / 4, 0.75 / 2, imitation, imitation, imitation], 6),
    )
  })

  it("is the clipped surrogate without an expert and μ, and has no gradient where all advantages are 0", () => {
    const input = exactInput(12, "completion", false)
    const { loss, gradient } = chord({ ...clip, peak: 0, valley: 0 }).evaluate(input)
    const plain = clippedSurrogate(clip).evaluate(input)
    expect([loss, ...gradient]).toEqual([plain.loss, ...plain.gradient].map((value) => expect.closeTo(value, 6)))
    const equal = chord().evaluate({ ...input, advantages: new Float64Array(input.tokens) })
    expect([equal.loss, ...equal.gradient].map(Math.abs)).toEqual(new Array(input.tokens + 1).fill(0))
  })

  it("is the expert's term where all shares of the policy's tokens are 0", () => {
    const input = mixedInput()
    const none = { ...input, shares: new Float64Array(input.tokens), weights: new Float64Array(input.tokens) }
    const { loss, gradient } = chord({ ...clip, peak: 0.3, valley: 0.3 }).evaluate(none)
    expect(loss).toBeCloseTo(defined(none, 0.3, true, none), 10)
    expect(gradient.every(Number.isFinite)).toBe(true)
  })

  it("has the schedule of Trinity-RFT, by numbers of its own function", () => {
    const schedule = { peak: 0.9, valley: 0.05, warmup: 5, decay: 20 }
    const expected = {
      1: 0.18,
      4: 0.72,
      5: 0.9,
      8: 0.8536777727800563,
      12: 0.6679459623893074,
      24: 0.0552324552470665,
      25: 0.05,
      40: 0.05,
    }
    for (const [iteration, mu] of Object.entries(expected))
      expect(chordWeight(Number(iteration), schedule)).toBeCloseTo(mu, 12)
  })
})
