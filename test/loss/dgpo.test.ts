import { describe, expect, it } from "vitest"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import { type DgpoOptions, dgpo } from "../../src/loss/dgpo.ts"
import { dgpoWeights } from "../../src/loss/dgpo-weights.ts"
import type { LossInput } from "../../src/loss/token-loss.ts"
import { Random } from "../../src/util/random.ts"
import { badArgument } from "../kernels/bad-argument.ts"
import { close, exactInput, ofRatios, slopes } from "./inputs.ts"

function movedInput(unit: "completion" | "conversation" = "completion"): LossInput {
  const random = new Random(21)
  const input = exactInput(20, unit, true)
  return {
    ...input,
    hellingers: Float64Array.from(input.logProbs, () => random.uniform()),
    entropies: Float64Array.from(input.logProbs, () => 3 * random.uniform()),
  }
}

describe("dgpoWeights", () => {
  it("equal n softmax(d H^kappa / tau), with mean 1", () => {
    const [d, H] = [
      [0, 0.3, 0.9],
      [1, 0.5, 0.25],
    ]
    const terms = [0, (0.3 * 0.5 ** 2) / 0.1, (0.9 * 0.25 ** 2) / 0.1].map(Math.exp)
    const total = terms.reduce((a, b) => a + b)
    expect([...dgpoWeights(d, H, { tau: 0.1, kappa: 2 })]).toEqual(
      close(
        terms.map((term) => (3 * term) / total),
        12,
      ),
    )
    const byDefault = [0, 0.15, 0.225].map((s) => Math.exp(s / 0.5))
    const sum = byDefault.reduce((a, b) => a + b)
    expect([...dgpoWeights(d, H)]).toEqual(
      close(
        byDefault.map((term) => (3 * term) / sum),
        12,
      ),
    )
  })

  it("are 1 if all tokens are equal, unchanged, or certain", () => {
    for (const [d, H] of [
      [
        [0.5, 0.5],
        [2, 2],
      ],
      [
        [0, 0],
        [1, 9],
      ],
      [
        [0.1, 0.9],
        [0, 0],
      ],
    ] as const)
      expect([...dgpoWeights(d, H)]).toEqual([1, 1])
    expect([...dgpoWeights([], [])]).toEqual([])
    expect([...dgpoWeights([0.2, 0.4], [0, 0], { kappa: 0, tau: 1e-3 })]).toEqual(close([0, 2], 12))
  })

  it("reject inputs that do not fit", () => {
    expect(() => dgpoWeights([1], [])).toThrow(badArgument(/1 distances and 0 entropies/))
    expect(() => dgpoWeights([Number.NaN], [1])).toThrow(/distance NaN and the entropy 1; give finite numbers/)
    expect(() => dgpoWeights([1], [1], { tau: 0 })).toThrow(badArgument(/dgpoWeights: tau must be above 0/))
  })
})

describe("dgpo", () => {
  const defined = (input: LossInput, { tau = 0.5, kappa = 1, entropyScale = "sequence" }: DgpoOptions): number => {
    const { offsets, segmentOffsets, logProbs, oldLogProbs, advantages, weights, clipScale, hellingers, entropies } =
      input
    let total = 0
    for (let s = 0; s + 1 < offsets.length; s++) {
      const at = Array.from({ length: offsets[s + 1]! - offsets[s]! }, (_, i) => offsets[s]! + i)
      const among = entropyScale === "sequence" ? at.map((t) => entropies![t]!) : entropies!
      const scale = entropyScale === "none" ? 1 : Math.max(...among)
      const score = (t: number) =>
        Math.exp((hellingers![t]! * (entropies![t]! / scale) ** (kappa as number)) / (tau as number))
      const all = at.reduce((sum, t) => sum + score(t), 0)
      for (const t of at) {
        const A = (advantages[t]! * at.length * score(t)) / all
        const r = Math.exp(logProbs[t]! - oldLogProbs[t]!)
        const width = clipScale![segmentOffsets.findLastIndex((start) => start <= t)]!
        const held = Math.min(Math.max(r, 1 - 0.2 * width), 1 + 0.2 * width)
        total += (weights![t]! * Math.max(-A * r, -A * held)) / input.tokens
      }
    }
    return total
  }

  it.each<DgpoOptions>([{}, { tau: 0.1, kappa: 2 }, { entropyScale: "batch", tau: 0.2 }, { entropyScale: "none" }])(
    "is its definition, and its gradient what differences show: %j",
    (options) => {
      for (const unit of ["completion", "conversation"] as const) {
        const input = movedInput(unit)
        const loss = composeLoss(dgpo(options))
        expect(loss.needs).toEqual(["entropy", "hellinger"])
        const { loss: found, gradient, metrics } = loss.evaluate(input)
        expect(found).toBeCloseTo(defined(input, options), 10)
        expect([...gradient]).toEqual(
          close(
            slopes(input, (moved) => defined(moved, options)),
            5,
          ),
        )
        const mean = Array.from(input.hellingers!).reduce((sum, d) => sum + d / input.tokens, 0)
        expect(metrics!["policy/hellinger"]).toBeCloseTo(mean, 10)
        expect(metrics!["policy/max-weight"]).toBeGreaterThan(1)
      }
    },
  )

  it("keeps the total advantage of a sequence", () => {
    const input = { ...movedInput(), weights: undefined, clipScale: undefined, oldLogProbs: movedInput().logProbs }
    const flat = { ...input, advantages: input.advantages.map(() => -1) } as unknown as LossInput
    expect(dgpo().evaluate(flat).loss).toBeCloseTo(1, 10)
  })

  it("requests the statistics that it reads", () => {
    expect(() => dgpo().evaluate(ofRatios([{ ratios: [1], advantage: 1 }]))).toThrow(badArgument(/give both columns/))
    expect(() => dgpo({ kappa: -1 })).toThrow(badArgument(/dgpo: kappa must be at least 0/))
  })
})
