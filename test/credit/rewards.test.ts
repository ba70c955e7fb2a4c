import { describe, expect, it } from "vitest"
import { estimate } from "../../src/credit/as-estimator.ts"
import { type BatchStep, toBatch } from "../../src/credit/batch.ts"
import { gigpo } from "../../src/credit/gigpo.ts"
import { grpo } from "../../src/credit/grpo.ts"
import { klRewards } from "../../src/credit/kl-reward.ts"
import { overlongPenalty } from "../../src/credit/overlong.ts"
import { Random } from "../../src/util/random.ts"
import { expectClose } from "./close.ts"

const context = { progress: { iteration: 0, iterations: 1 }, random: new Random(0) }

const bad = (message: RegExp) =>
  expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) })

describe("klRewards", () => {
  const steps: BatchStep[] = [
    { task: 0, episode: 0, reward: 1, length: 2, valid: false },
    { task: 0, episode: 1, reward: 0.5, length: 3, tokenRewards: Float64Array.of(1, 0, -0.5) },
  ]
  const old = [Float32Array.of(-1, -2), Float32Array.of(-0.5, -1, -1.5)]
  const reference = [Float32Array.of(-2, -1.5), Float32Array.of(-0.5, -3, -1)]
  const batch = toBatch(steps, { old, reference })

  it("subtracts the weighted KL from each token's reward, with k1 by default", () => {
    const { rewards, tokenRewards } = klRewards(batch, 0.5)
    // log p_old - log p_ref: 1, -0.5 and 0, 2, -0.5
    expectClose(tokenRewards![0]!, [-0.5, 1.25])
    expectClose(tokenRewards![1]!, [1, -1, -0.25])
    expectClose(rewards, [0.75, -0.25])
  })

  it("supports other estimators, of log p_ref - log p_old", () => {
    const { tokenRewards } = klRewards(batch, 2, (d) => (d * d) / 2)
    expectClose(tokenRewards![0]!, [-1, 0.75])
    expectClose(tokenRewards![1]!, [1, -4, -0.75])
  })

  it("does not modify the batch, and returns equal rewards at weight 0", () => {
    klRewards(batch, 1)
    expect([...batch.rewards]).toEqual([1, 0.5])
    expect(batch.tokenRewards!.map((tokens) => [...tokens])).toEqual([
      [0, 1],
      [1, 0, -0.5],
    ])
    expect(klRewards(batch, 0)).toBe(batch)
  })

  it("requests anchors only if the estimator does, and passes them on", async () => {
    const bare = klRewards(batch, 0.5)
    const { details } = await estimate(grpo(), bare, context)
    expectClose(details!.episodeReturns as Float64Array, [0.75, -0.25])
    expect(() => bare.anchorGroups).toThrow(bad(/Step 0 has an anchor of type undefined/))
    const withAnchors = toBatch(
      steps.map((step) => ({ ...step, anchor: "s" })),
      { old, reference },
    )
    const { details: both } = await estimate(gigpo(), klRewards(withAnchors, 0.5), context)
    expect([...both!.stepGroups!]).toEqual([0, 0])
  })

  it("rejects batches without log-probabilities", () => {
    expect(() => klRewards(toBatch(steps, { old }), 1)).toThrow(bad(/give statistics\.old and statistics\.reference/))
    expect(() => klRewards(batch, -1)).toThrow(bad(/weight of the KL penalty in the reward is -1/))
    expect(() => klRewards(batch, Number.NaN)).toThrow(bad(/is NaN/))
  })
})

describe("overlongPenalty", () => {
  it("decreases linearly over the last tokens", () => {
    expect([1, 12, 13, 14, 15, 16, 17].map((length) => overlongPenalty(length, 16, 4))).toEqual([
      0, 0, -0.25, -0.5, -0.75, -1, -1,
    ])
    expect(overlongPenalty(8, 16, 16)).toBe(-0.5)
    expect(overlongPenalty(16, 16, 1)).toBe(-1)
  })

  it("rejects an invalid cache", () => {
    for (const cache of [0, 17, Number.NaN])
      expect(() => overlongPenalty(1, 16, cache)).toThrow(bad(/use 1 to 16 tokens/))
  })
})
