import { describe, expect, it } from "vitest"
import { clippedSurrogate } from "../../src/loss/clipped-surrogate.ts"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import { gspo } from "../../src/loss/gspo.ts"
import { badArgument } from "../kernels/bad-argument.ts"
import { now, ofRatios } from "./inputs.ts"

describe("gspo", () => {
  it("clips one ratio per sequence within its narrow bounds", () => {
    const moved = (ratio: number, advantage: number) => ({ ratios: [ratio ** 3, 1 / ratio], advantage }) // its mean is ratio
    const input = ofRatios([moved(1.0003, 1), moved(1.0006, 1), moved(0.9998, -1), moved(0.9996, -1), moved(30, -1)])
    const { gradient, loss, metrics } = gspo().evaluate(input)
    const close = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 5))
    const slopes = [-1.0003, -1.0003, 0, 0, 0.9998, 0.9998, 0, 0, 30, 30]
    expect([...gradient]).toEqual(close(slopes.map((slope) => slope / 10)))
    expect(loss).toBeCloseTo((-1.0003 - 1.0004 + 0.9998 + 0.9997 + 30) / 5, 5)
    expect(metrics).toMatchObject({ "policy/clip-fraction": 0.4, "policy/dual-clip-fraction": 0 })
  })

  it("has the native form of a clipped surrogate, with its terms", () => {
    expect(gspo().name).toBe("gspo")
    const native = composeLoss(gspo({ clipHigh: 1e-3 }), { aggregation: "sequence-mean-token-mean", klWeight: 0.1 })
      .native!(now.progress)
    const options = { importanceSamplingLevel: "sequence", clipLow: 3e-4, clipHigh: 1e-3, clipDual: Infinity } as const
    const wanted = composeLoss(clippedSurrogate({ ...options, skipZeroAdvantage: false }), {
      aggregation: "sequence-mean-token-mean",
      klWeight: 0.1,
    }).native!(now.progress)
    expect(native).toEqual(wanted)
    expect(native).toMatchObject({ kind: "clipped-surrogate", ...options })
  })

  it("accepts schedules, and rejects unknown options", () => {
    const native = gspo({ clipLow: { from: 1e-4, to: 3e-4 } }).native!({ iteration: 5, iterations: 10 })
    expect(native).toMatchObject({ clipLow: expect.closeTo(2e-4, 12) })
    expect(() => gspo({ clipDual: 3 } as object)).toThrow(badArgument(/gspo: clipDual/))
    expect(() => gspo({ clipLow: 2 })).toThrow(badArgument(/gspo: clipLow must be a number from 0 to 1, not 2/))
  })
})
