import { existsSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { compare } from "./compare.ts"
import { lossTopics } from "./losses.ts"
import type { Vector } from "./topic.ts"

const mask = [
  [1, 0, 1],
  [0, 0, 0],
  [0, 1, 0],
]

// Small ones by hand, with a hole and an empty reply: replies of ratios 2 and 1/2, and of 1.
const logp = [
  [-1, 9, -2],
  [9, 9, 9],
  [9, -3, 9],
]
const old_logp = [
  [-1 - Math.LN2, 9, -2 + Math.LN2],
  [9, 9, 9],
  [9, -3, 9],
]
const weight = [
  [1, 9, 3],
  [9, 9, 9],
  [9, 2, 9],
]
const inputs = { mask, logp, old_logp, weight, advantage: [1, 9, -1] }

const byHand: Record<string, Vector> = {
  policy_gradient: {
    params: { aggregation: "token-sum" },
    inputs,
    expected: { loss: 1 + 3 * 2 - 2 * 3, dlogp: [[-1, 0, -3], [], [0, 2]] },
  },
  cispo: {
    params: { aggregation: "seq-mean-token-mean", clip_low: 0.25, clip_high: 0.5 },
    inputs,
    expected: { loss: ((1.5 + 0.75 * 3 * 2) / 2 - 2 * 3) / 2, clip_fraction: 2 / 3, kl: 0 },
  },
  gmpo: {
    params: { aggregation: "seq-mean-token-mean", clip_low: 0.25, clip_high: Math.LN2 / 2 },
    inputs,
    expected: { loss: (-Math.sqrt(Math.SQRT2 / 2) * Math.sqrt(3) + 2) / 2 },
  },
  dppo_tv: {
    params: { aggregation: "token-mean", threshold_low: 0.1, threshold_high: 0.1, truncate: 1.5 },
    inputs,
    expected: { loss: (0 + 0.5 * 3 * 2 - 2 * 3) / 3, masked_fraction: 1 / 3, truncated_fraction: 0 },
  },
  clip_cov: {
    params: { aggregation: "token-sum", clip_low: 0.2, clip_high: 0.2, ratio: 1, low: 0.5, high: 2 },
    inputs,
    // Means 1/3 and -2: covariances 2/3, of a token that is clipped, 0 and 4/3.
    expected: { loss: -1.2 - 1.5 + 0, dropped_fraction: 1 / 3 },
  },
  importance_weights: {
    params: { level: "sequence", normalize: true, drop_outside: [0.5, 2] },
    inputs: { mask, trainer_logp: logp, sampler_logp: old_logp },
    expected: { weight: [[1, 0, 1], [], [0, 1]] },
  },
  mismatch: {
    params: {},
    inputs: { mask, trainer_logp: logp, sampler_logp: old_logp },
    expected: {
      kl: 0,
      k3_kl: 0.5 / 3,
      chi2_token: (4 + 0.25 + 1) / 3 - 1,
      chi2_seq: 0,
      training_log_ppl: (1.5 + 3) / 2,
    },
  },
}

it.each(Object.entries(byHand))("the topic %s reads a vector", async (topic, vector) => {
  const { compared, first } = compare(topic, vector.expected, await lossTopics[topic]!(vector), mask)
  expect(first).toEqual([])
  expect(compared).toBeGreaterThan(0)
})

const file = new URL("../../../shared/vectors/baselines.json", import.meta.url)
const absent = existsSync(file) ? "" : " (skipped: ../shared/vectors/baselines.json is not here)"

describe.skipIf(absent)(`losses against the shared vectors${absent}`, () => {
  it.each(Object.keys(lossTopics))("%s", async (topic) => {
    const vectors = Object.entries<Vector>(JSON.parse(readFileSync(file, "utf8")))
    const own = vectors.filter(([key]) => key.split("/")[0] === topic)
    expect(own).not.toEqual([])
    for (const [key, vector] of own) {
      const { compared, first } = compare(key, vector.expected, await lossTopics[topic]!(vector), vector.inputs.mask)
      expect(first).toEqual([])
      expect(compared).toBeGreaterThan(0)
    }
  })
})
