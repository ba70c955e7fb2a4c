import { describe, expect, it } from "vitest"
import { actGuide } from "../../src/loss/act-guide.ts"
import { clippedSurrogate } from "../../src/loss/clipped-surrogate.ts"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import { lossInput } from "../../src/loss/loss-input.ts"
import type { LossInput } from "../../src/loss/token-loss.ts"
import { badArgument } from "../kernels/bad-argument.ts"
import { close, exactInput, now, ofRatios, row, slopes } from "./inputs.ts"

/** Every other span was said with a hint. */
function hintedInput(): LossInput {
  const input = exactInput(11, "completion", true)
  return { ...input, offPolicy: Uint8Array.from(input.clipScale!, (_, segment) => segment % 2) }
}

const hold = (x: number, low: number, high: number) => Math.min(Math.max(x, low), high)

/** As it is written, token by token; what is stopped is taken from `fixed`. */
function defined(input: LossInput, shaping: number, fixed: LossInput): number {
  const { tokens, segmentOffsets, logProbs, oldLogProbs, advantages, weights, clipScale, offPolicy } = input
  let total = 0
  for (let t = 0; t < tokens; t++) {
    const segment = segmentOffsets.findLastIndex((start) => start <= t)
    const [A, off] = [advantages[t]!, offPolicy![segment] === 1]
    const r = Math.exp(logProbs[t]! - oldLogProbs[t]!)
    const width = clipScale![segment]! * (off ? 2 : 1)
    let value = Math.max(-A * r, -A * hold(r, 1 - 0.1 * width, 1 + 0.2 * width))
    if (A < 0) value = Math.min(value, -1.3 * A)
    if (off && shaping > 0) {
      const then = Math.exp(fixed.logProbs[t]! - oldLogProbs[t]!)
      value = ((-A * then) / (then + shaping)) * Math.exp(logProbs[t]! - fixed.logProbs[t]!)
    }
    total += (weights![t]! * (off ? 0.3 : 1) * value) / tokens
  }
  return total
}

const options = { clipLow: 0.1, clipHigh: 0.2, clipDual: 1.3, offPolicyWeight: 0.3, offPolicyClipScale: 2 }

describe("actGuide", () => {
  it.each([0, 0.1, 2])("matches its definition, and its gradient finite differences, with shaping %d", (shaping) => {
    const input = hintedInput()
    const { loss, gradient, metrics } = composeLoss(actGuide({ ...options, shaping })).evaluate(input)
    expect(loss).toBeCloseTo(defined(input, shaping, input), 10)
    expect([...gradient]).toEqual(
      close(
        slopes(input, (moved) => defined(moved, shaping, input)),
        5,
      ),
    )
    const { segmentOffsets, offPolicy, tokens } = input
    const off = offPolicy!.reduce(
      (sum, one, segment) => sum + one * (segmentOffsets[segment + 1]! - segmentOffsets[segment]!),
      0,
    )
    expect(metrics!["policy/off-policy-fraction"]).toBeCloseTo(off / tokens, 12)
    expect(off).toBeGreaterThan(0)
  })

  it("equals the clipped surrogate without hints", () => {
    const input = exactInput(12, "completion", false)
    const plain = clippedSurrogate({ clipLow: 0.1, clipHigh: 0.2, clipDual: 1.3 }).evaluate(input)
    const { metrics, ...found } = actGuide(options).evaluate(input)
    expect({ ...found, metrics: { ...metrics } }).toEqual({
      ...plain,
      metrics: { ...plain.metrics, "policy/off-policy-fraction": 0 },
    })
  })

  it("weights hinted spans by a tenth, with optional shaping that keeps ratios at most 1", () => {
    const input = ofRatios([
      { ratios: [1], advantage: 1 },
      { ratios: [1], advantage: 1, more: { offPolicy: true } },
    ])
    expect([...actGuide().evaluate(input).gradient]).toEqual(close([-0.5, -0.05], 6))
    const far = ofRatios([{ ratios: [100, 0.01], advantage: -1, more: { offPolicy: true } }])
    const { gradient } = actGuide({ offPolicyWeight: 1, shaping: 0.1 }).evaluate(far)
    expect([...gradient]).toEqual(close([100 / 100.1 / 2, 0.01 / 0.11 / 2], 6))
  })

  it("identifies hinted spans by the rows", () => {
    const segments = [false, true].map((offPolicy) => ({
      length: 2,
      advantage: 1,
      logProbs: new Float32Array(2),
      offPolicy,
    }))
    const { offPolicy } = lossInput([row(...segments)], { logProbs: new Float32Array(4) }, now)
    expect([...offPolicy!]).toEqual([0, 1])
    expect(lossInput([], { logProbs: new Float32Array(0) }, now)).not.toHaveProperty("offPolicy")
    expect(actGuide().evaluate(lossInput([], { logProbs: new Float32Array(0) }, now)).gradient).toHaveLength(0)
  })

  it("rejects invalid options", () => {
    expect(() => actGuide({ shaping: -1 })).toThrow(badArgument(/actGuide: shaping must be at least 0/))
    expect(() => actGuide({ ratio: "sequence" } as object)).toThrow(badArgument(/actGuide: ratio/))
  })
})
