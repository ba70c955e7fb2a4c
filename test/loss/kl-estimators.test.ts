import { describe, expect, it } from "vitest"
import type { KlEstimator } from "../../src/engine/engine.ts"
import { klEstimators } from "../../src/loss/kl-estimators.ts"
import { Random } from "../../src/util/random.ts"

const names = Object.keys(klEstimators) as KlEstimator[]

describe("the estimators of the KL", () => {
  it("have these values", () => {
    const d = 0.5
    const k3 = Math.exp(d) - d - 1
    const wanted = { k1: -d, k2: d * d * 0.5, k3, abs: d, "k1+": -d, "k3+": k3 }
    for (const name of names) expect(klEstimators[name].value(d), name).toBeCloseTo(wanted[name], 12)
    expect(klEstimators.abs.value(-d)).toBe(d)
  })

  it.each(["k1", "k2", "k3", "abs"] as const)("%s has the gradient that its differences show", (name) => {
    const { value, gradient } = klEstimators[name]
    for (const d of [-12, -9, -1, -0.1, 0.1, 1, 2.5, 2.7, 9, 30]) {
      const step = 1e-6
      // d = log p_ref - log p falls as log p rises
      expect((value(d - step) - value(d + step)) / (2 * step), `${d}`).toBeCloseTo(gradient(d), 6)
    }
  })

  it("have the gradient of k2 in the plus variants", () => {
    for (const d of [-30, -1, 0.1, 2.7, 30])
      for (const name of ["k1+", "k3+"] as const) expect(klEstimators[name].gradient(d)).toBe(-d)
  })

  it("bound k3 by 10, but not its exponent, and stay finite", () => {
    const { value, gradient } = klEstimators.k3
    expect(value(-10.5)).toBeCloseTo(9.5, 4)
    expect(gradient(-10.5)).toBeCloseTo(1, 4)
    for (const d of [-11.5, 2.62, 10, 1e30, -1e30]) expect([value(d), gradient(d)]).toEqual([10, 0])
    for (const name of names)
      for (const d of [-1e30, 1e30])
        expect([klEstimators[name].value(d), klEstimators[name].gradient(d)].every(Number.isFinite)).toBe(true)
  })

  it("match the KL: the plus variants and k2 have its gradient in expectation", () => {
    // Over a choice of three: p by logits, of which one moves; ∇ KL = Σ p (log p - log q) ∇ log p.
    const random = new Random(3)
    const softmax = (logits: readonly number[]) => {
      const sum = logits.reduce((total, logit) => total + Math.exp(logit), 0)
      return logits.map((logit) => Math.exp(logit) / sum)
    }
    const [logits, q] = [Array.from({ length: 3 }, () => random.uniform()), softmax([0, 1, 0.5])]
    const klAt = (move: number) =>
      softmax([logits[0]! + move, logits[1]!, logits[2]!]).reduce((kl, p, i) => kl + p * Math.log(p / q[i]!), 0)
    const wanted = (klAt(1e-6) - klAt(-1e-6)) / 2e-6
    const p = softmax(logits)
    for (const name of ["k2", "k1+", "k3+"] as const) {
      const found = p.reduce(
        (sum, chance, i) =>
          sum + chance * klEstimators[name].gradient(Math.log(q[i]! / chance)) * ((i === 0 ? 1 : 0) - p[0]!),
        0,
      )
      expect(found).toBeCloseTo(wanted, 6)
    }
    expect(Math.abs(wanted)).toBeGreaterThan(0.01)
  })
})
