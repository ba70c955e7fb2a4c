import { describe, expect, it } from "vitest"
import { adaptiveKl } from "../../src/loss/adaptive-kl.ts"
import { badArgument } from "../kernels/bad-argument.ts"

const options = { weight: 0.2, target: 0.1, horizon: 1000 }

describe("adaptiveKl", () => {
  it("changes the weight by the error of the KL, at most by a fifth, in proportion to the horizon", () => {
    const control = adaptiveKl(options)
    expect(control.weight).toBe(0.2)
    control.update(0.11, 500) // an error of 0.1, half a horizon
    expect(control.weight).toBeCloseTo(0.2 * 1.05, 12)
    control.update(9, 500)
    expect(control.weight).toBeCloseTo(0.2 * 1.05 * 1.1, 12)
    control.update(-9, 1000)
    expect(control.weight).toBeCloseTo(0.2 * 1.05 * 1.1 * 0.8, 12)
    const before = control.weight
    control.update(0.1, 1000)
    control.update(7, 0)
    expect(control.weight).toBe(before)
  })

  it("drives a responsive KL to its target", () => {
    const control = adaptiveKl({ weight: 1, target: 0.02, horizon: 100 })
    const answer = () => 0.1 / (1 + 10 * control.weight)
    for (let update = 0; update < 500; update++) control.update(answer(), 64)
    expect(answer()).toBeCloseTo(0.02, 6)
  })

  it("continues from its state", () => {
    const [one, other] = [adaptiveKl(options), adaptiveKl({ ...options, weight: 5 })]
    one.update(0.3, 100)
    other.restore(JSON.parse(JSON.stringify(one.state())))
    for (const control of [one, other]) control.update(0.05, 100)
    expect(other.weight).toBe(one.weight)
    expect(one.weight).not.toBe(0.2)
  })

  it("rejects invalid options and values, and keeps its weight", () => {
    expect(() => adaptiveKl({ ...options, target: 0 })).toThrow(badArgument(/target must be above 0, not 0/))
    expect(() => adaptiveKl({ ...options, horizon: Infinity })).toThrow(badArgument(/horizon must be a finite number/))
    expect(() => adaptiveKl({ target: 1 } as never)).toThrow(badArgument(/weight is missing/))
    const control = adaptiveKl(options)
    expect(() => control.update(NaN, 1)).toThrow(expect.objectContaining({ code: "NON_FINITE" }))
    expect(() => control.update(0.1, 5000)).toThrow(
      badArgument(/steps is 5000; .* below 5000\. Use a horizon longer than 1000/),
    )
    expect(() => control.update(0.1, -1)).toThrow(badArgument(/steps is -1;/))
    expect(control.weight).toBe(0.2)
  })
})
