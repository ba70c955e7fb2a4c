import { describe, expect, it } from "vitest"
import type { Credit } from "../../src/credit/estimator.ts"
import { plainEstimators } from "../../src/credit/plain-estimators.ts"
import { ppo } from "../../src/credit/ppo.ts"
import { vinePpo } from "../../src/credit/vine-ppo.ts"
import { whiten } from "../../src/credit/whiten.ts"
import { only } from "../../src/options/fixed.ts"
import { readOptions } from "../../src/options/read.ts"
import { expectClose } from "./close.ts"
import { creditOf, deviation, equalEpisodes, expectOrderless, fromOn, mean, sum, type Told, worlds } from "./worlds.ts"

const valueOfState = ({ anchor, turn }: Told) => Number(anchor.slice(1)) - turn / 3
/** A critic's values, of which only the one before a step's first token says anything. */
const statistics = (steps: readonly Told[]) => ({
  value: steps.map((step) =>
    Float64Array.from({ length: step.length }, (_, token) => (token === 0 ? valueOfState(step) : 99)),
  ),
})

function surprises(steps: readonly Told[], gamma: number, lambda: number): number[] {
  return steps.map((step) =>
    sum(
      fromOn(steps, step).map((now, later, all) => {
        const next = all[later + 1]
        const delta = now.reward + (next ? gamma * valueOfState(next) : 0) - valueOfState(now)
        return (gamma * lambda) ** later * delta
      }),
    ),
  )
}

describe.each([
  ["step-ppo", "sample"],
  ["turn-ppo", "population"],
] as const)("%s", (name, kind) => {
  const { fields, make } = plainEstimators[name]
  const estimator = make(only(readOptions(name, { gamma: 0.95, lambda: 0.9 }, fields), fields))

  it(`is GAE over steps, whitened over steps by the ${kind}'s deviation`, async () => {
    for (const steps of worlds) {
      const raw = surprises(steps, 0.95, 0.9)
      const { advantages, returns } = await creditOf(estimator, steps, statistics(steps))
      const scaled = raw.map((one) => (one - mean(raw)) / Math.sqrt(deviation(raw, kind) ** 2 + 1e-8))
      expect((advantages as Float32Array[]).map(({ length }) => length)).toEqual(steps.map(({ length }) => length))
      for (const [row, step] of steps.entries()) {
        for (const value of (advantages as Float32Array[])[row]!) expect(value).toBeCloseTo(scaled[row]!, 4)
        for (const value of returns![row]!) expect(value).toBeCloseTo(raw[row]! + valueOfState(step), 4)
      }
    }
  })

  it("gives exactly 0 for equal temporal differences", async () => {
    const steps = equalEpisodes(0.1).filter(({ turn }) => turn === 0)
    const value = steps.map(({ length }) => new Float64Array(length).fill(0.3))
    const { advantages } = (await creditOf(estimator, steps, { value })) as Credit
    expect((advantages as Float32Array[]).flatMap((tokens) => [...tokens]).every((one) => one === 0)).toBe(true)
  })
})

describe("ppo", () => {
  it("whitens steps only if steps are the unit of decisions", () => {
    expect(() => ppo({ whitenOver: "steps" })).toThrow(/whitenOver is "steps", which needs level: "step"/)
    expect(() => ppo({ epsilon: -1 })).toThrow(/epsilon must be/)
  })
})

describe("whiten", () => {
  it("divides by the configured deviation plus epsilon", () => {
    const values = Float64Array.of(1, 2, 6, 100)
    const counted = Int32Array.of(1, 2, 1, 0)
    const all = [1, 2, 2, 6]
    for (const std of ["sample", "population"] as const)
      expectClose(
        whiten(values, counted, { std, epsilon: 0.5 }),
        [...values].map((one) => (one - mean(all)) / Math.sqrt(deviation(all, std) ** 2 + 0.5)),
      )
    expect([...whiten(new Float64Array(3).fill(0.3), undefined, { std: "population", epsilon: 0 })]).toEqual([0, 0, 0])
    expect(whiten(new Float64Array(0))).toEqual(new Float64Array(0))
  })
})

describe("vinePpo", () => {
  it("subtracts the value of a state from reward plus next value, whitened over tokens", async () => {
    for (const steps of worlds) {
      const known = steps.map((step) => {
        const next = fromOn(steps, step)[1]
        const [now, then] = [step.metrics.value, next ? next.metrics.value : 0]
        return now === undefined || then === undefined ? undefined : step.reward + 0.9 * then - now
      })
      const tokens = steps.flatMap(({ length }, row) =>
        known[row] === undefined ? [] : Array<number>(length).fill(known[row]!),
      )
      const expected = known.map((one) =>
        one === undefined ? one : (one - mean(tokens)) / Math.sqrt(deviation(tokens) ** 2 + 1e-8),
      )
      const { advantages, skip } = await creditOf(vinePpo({ value: "value", gamma: 0.9 }), steps)
      expect([...skip!]).toEqual(known.map((one) => (one === undefined ? 1 : 0)))
      for (const [row, one] of expected.entries())
        if (one !== undefined) expect((advantages as Float64Array)[row]).toBeCloseTo(one, 9)
    }
  })

  it("does not depend on the order of episodes", () =>
    expectOrderless(() => vinePpo({ value: ({ rewards }) => rewards.map((reward) => reward / 2) })))

  it("gives exactly 0 for equal temporal differences", async () => {
    const steps = equalEpisodes(0.1).filter(({ turn }) => turn === 0)
    const { advantages } = await creditOf(vinePpo({ value: "value" }), steps)
    expect((advantages as Float64Array).every((one) => one === 0)).toBe(true)
  })

  it("rejects missing values", async () => {
    await expect(creditOf(vinePpo(), worlds[0]!)).rejects.toThrow(/no step has the metric "monte-carlo-value"/)
  })
})
