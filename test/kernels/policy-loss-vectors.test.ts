import { existsSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { policyLoss, type SurrogateInput } from "../../src/kernels/policy-loss.ts"

const vectors = new URL("../../../shared/vectors/gigpo.json", import.meta.url)
const absent = existsSync(vectors) ? "" : " (skipped: ../shared/vectors/gigpo.json is not here)"

describe.skipIf(absent)(`policyLoss against the shared vectors${absent}`, () => {
  interface PolicyLossVectors {
    old_logp: number[][]
    new_logp: number[][]
    ref_logp: number[][]
    mask: number[][]
    advantage: number[][]
    clip_low: number
    clip_high: number
    clip_c: number
    ratio: number[][]
    token_loss_grad_wrt_new_logp: number[][]
    pg_loss: Record<string, number>
    kl: Record<"k1" | "k2" | "k3", Record<string, number>>
    total_token_mean_beta_0_01: number
    clipfrac: number
    clip_higher: { clip_low: number; clip_high: number; pg_loss_token_mean: number }
    gspo: { clip_low: number; clip_high: number; seq_ratio: number[]; pg_loss_seq_mean_token_mean: number }
  }
  const load = (): PolicyLossVectors => JSON.parse(readFileSync(vectors, "utf8")).policy_loss
  const flat = (values: readonly number[][]) => Float32Array.from(values.flat())

  function input(v: PolicyLossVectors): SurrogateInput {
    return {
      logProbs: flat(v.new_logp),
      oldLogProbs: flat(v.old_logp),
      referenceLogProbs: flat(v.ref_logp),
      advantages: flat(v.advantage),
      mask: flat(v.mask),
      lengths: Int32Array.from(v.mask, (row) => row.length),
    }
  }
  const options = (v: PolicyLossVectors) => ({ clipLow: v.clip_low, clipHigh: v.clip_high, clipDual: v.clip_c })
  const aggregations = {
    "token-mean": "token-mean",
    "seq-mean-token-sum": "sequence-mean-token-sum",
    "seq-mean-token-mean": "sequence-mean-token-mean",
    "seq-mean-token-sum-norm": "sequence-mean-token-sum-norm",
  } as const
  const names = Object.keys(aggregations) as (keyof typeof aggregations)[]

  it("knows every aggregation and estimator of the vectors", () => {
    const v = load()
    expect(names.toSorted()).toEqual(Object.keys(v.pg_loss).toSorted())
    expect(Object.keys(v.kl)).toEqual(["k1", "k2", "k3"])
  })

  it.each(names)("computes the policy loss by %s", (name) => {
    const v = load()
    const aggregation = aggregations[name]
    expect(policyLoss(input(v), { ...options(v), aggregation }).policyLoss).toBeCloseTo(v.pg_loss[name]!, 6)
  })

  it.each(names)("computes each KL estimate by %s", (name) => {
    const v = load()
    for (const klEstimator of ["k1", "k2", "k3"] as const) {
      const found = policyLoss(input(v), { ...options(v), klEstimator, aggregation: aggregations[name] })
      expect(found.kl, klEstimator).toBeCloseTo(v.kl[klEstimator][name]!, 6)
    }
  })

  it("computes gradient, ratio, clip fraction and total with a KL term", () => {
    const v = load()
    const found = policyLoss(input(v), options(v))
    const active = v.mask.flat().reduce((a, b) => a + b)
    const wanted = v.token_loss_grad_wrt_new_logp.flat().map((g, i) => (g * v.mask.flat()[i]!) / active)
    for (const [i, g] of found.gradient.entries()) expect(g).toBeCloseTo(wanted[i]!, 6)
    const ratios = v.ratio.flat().filter((_, i) => v.mask.flat()[i])
    expect(found.ratio).toBeCloseTo(ratios.reduce((a, b) => a + b) / active, 5)
    // The vectors count clips of the ratio, not of the dual clip.
    expect(found.clipFraction).toBeCloseTo(v.clipfrac, 6)
    const total = policyLoss(input(v), { ...options(v), klWeight: 0.01 })
    expect(total.loss).toBeCloseTo(v.total_token_mean_beta_0_01, 6)
  })

  it("clips higher", () => {
    const v = load()
    const { clip_low: clipLow, clip_high: clipHigh, pg_loss_token_mean: wanted } = v.clip_higher
    expect(policyLoss(input(v), { clipLow, clipHigh, clipDual: v.clip_c }).policyLoss).toBeCloseTo(wanted, 6)
  })

  it("computes the loss of GSPO and its ratio per sequence", () => {
    const v = load()
    const { clip_low: clipLow, clip_high: clipHigh } = v.gspo
    const gspo = {
      clipLow,
      clipHigh,
      importanceSamplingLevel: "sequence",
      aggregation: "sequence-mean-token-mean",
    } as const
    const found = policyLoss(input(v), gspo)
    expect(found.policyLoss).toBeCloseTo(v.gspo.pg_loss_seq_mean_token_mean, 6)
    const counts = v.mask.map((row) => row.reduce((a, b) => a + b))
    const mean = v.gspo.seq_ratio.reduce((sum, r, i) => sum + r * counts[i]!, 0) / counts.reduce((a, b) => a + b)
    expect(found.ratio).toBeCloseTo(mean, 5)
  })
})
