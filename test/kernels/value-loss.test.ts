import { describe, expect, it } from "vitest"
import { type ValueLossInput, valueLoss } from "../../src/kernels/value-loss.ts"
import { badArgument } from "./bad-argument.ts"

describe("valueLoss", () => {
  const input: ValueLossInput = {
    values: Float64Array.of(1, 1, 0.25, -2),
    oldValues: Float64Array.of(0, 0, 0, 0),
    returns: Float64Array.of(3, -3, 0, 1),
  }

  it("is half the mean squared error without a clip", () => {
    const { oldValues: _, ...plain } = input
    const report = valueLoss(plain)
    expect(report.loss).toBeCloseTo((4 + 16 + 0.0625 + 9) / 8, 12)
    expect([...report.gradient]).toEqual([-0.5, 1, 0.0625, -0.75])
    expect(report.clipFraction).toBe(0)
    expect(valueLoss(input)).toEqual(report)
  })

  it("has no gradient for values that moved far enough toward the return, and full gradient for those that moved away", () => {
    const report = valueLoss(input, { clip: 0.5 })
    // Held at 0.5, the first is further off; the second and the fourth have moved away.
    expect([...report.gradient]).toEqual([0, 1, 0.0625, -0.75])
    expect(report.loss).toBeCloseTo((6.25 + 16 + 0.0625 + 9) / 8, 12)
    expect(report.clipFraction).toBe(0.25)
  })

  it("never reads masked tokens, and accepts float32", () => {
    const masked = { ...input, values: Float32Array.of(1, NaN, 0.25, -2), mask: Float32Array.of(1, 0, 1, 1) }
    const report = valueLoss(masked, { clip: 0.5 })
    expect(report.loss).toBeCloseTo((6.25 + 0.0625 + 9) / 6, 12)
    expect([...report.gradient].map((value) => value + 0)).toEqual([0, 0, 0.25 / 3, -1])
    expect(valueLoss({ ...masked, mask: new Float32Array(4) })).toEqual({
      loss: 0,
      clipFraction: 0,
      gradient: new Float64Array(4),
    })
  })

  it("rejects arrays that do not fit, with the fix", () => {
    const { oldValues: _, ...plain } = input
    const wrong: [ValueLossInput, number, RegExp][] = [
      [{ ...input, returns: new Float64Array(3) }, 1, /returns must be as long as values \(4\), not 3/],
      [{ ...input, mask: new Float64Array(5) }, 1, /mask must be as long as values \(4\), not 5/],
      [input, 0, /clip is 0; it must be above 0/],
      [plain, 1, /a finite clip needs oldValues/],
    ]
    for (const [given, clip, message] of wrong) expect(() => valueLoss(given, { clip })).toThrow(badArgument(message))
  })
})
