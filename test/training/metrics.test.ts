import { describe, expect, it } from "vitest"
import { toBatch } from "../../src/credit/batch.ts"
import type { Credit, Estimator } from "../../src/credit/estimator.ts"
import { gigpo } from "../../src/credit/gigpo.ts"
import { grpo } from "../../src/credit/grpo.ts"
import type { LossReport } from "../../src/engine/engine.ts"
import { criticMetrics } from "../../src/training/critic.ts"
import { rolloutMetrics, Stopwatch, updateMetrics } from "../../src/training/metrics.ts"
import { collectSteps } from "../../src/training/steps.ts"
import { atOnce } from "../../src/util/pace.ts"
import { Random } from "../../src/util/random.ts"
import { episode, step } from "./episodes.ts"

const groups = [
  [
    episode([step("a", 0), step("b", 1)], { metrics: { success: 1, score: 4 } }),
    episode([step("a", 2, 1, { valid: false, finishReason: "length" })], {
      outcome: "truncated",
      metrics: { success: 0 },
    }),
  ],
  [
    episode([step("x", 100)], { outcome: "failed", metrics: { success: 1, score: 1000 } }),
    episode([], { outcome: "overflow" }),
  ],
]

const numbered = (all: typeof groups) => all.map((episodes, index) => ({ task: index, index, episodes }))

/** The metrics with this estimator's credit. */
async function metricsOf(all: typeof groups, estimator: Estimator = gigpo({})) {
  const context = { progress: { iteration: 0, iterations: 1 }, random: new Random(1) }
  const credit: Credit = await estimator.estimate(toBatch(collectSteps(all)), context)
  return { ...credit.metrics, ...atOnce(rolloutMetrics(numbered(all), credit)) }
}

describe("the metrics of a rollout", async () => {
  const metrics = await metricsOf(groups)

  it("count every episode, but average over those that did not fail", async () => {
    expect(metrics).toMatchObject({
      "episode/count": 4,
      "episode/failed": 1 / 4,
      "episode/truncated": 1 / 4,
      "episode/overflow": 1 / 4,
      "episode/return": 3 / 3,
      "episode/steps": 3 / 3,
    })
  })

  it("average completions and prompts over steps", async () => {
    expect(metrics).toMatchObject({
      "action/valid": 2 / 3,
      "completion/tokens": 2,
      "completion/truncated": 1 / 3,
      "prompt/tokens": 3,
    })
  })

  it("average metrics of the environment over the episodes that have them, but success over all", async () => {
    expect(metrics).toMatchObject({ "episode/success": 1 / 4, "episode/score": 4 })
  })

  it("report how close successes came to the step limit", async () => {
    const success = { metrics: { success: 1 } }
    const five = Array.from("abcde", (anchor) => step(anchor, 0))
    const cut = episode(five, { outcome: "truncated", metrics: { success: 0 } })
    const found = await metricsOf([[episode(five, success), episode([step("a", 1)], success), cut]])
    expect(found).toMatchObject({ "episode/near-limit": 1 / 2 })
    expect(await metricsOf([[episode(five), cut]])).not.toHaveProperty("episode/near-limit")
  })

  it("are not replaced by metrics of the environment with the same names", async () => {
    const rude = [[episode([step("a", 1)], { metrics: { count: 99, return: 99, failed: 99, steps: 99 } })]]
    expect(await metricsOf(rude)).toMatchObject({
      "episode/count": 1,
      "episode/return": 1,
      "episode/failed": 0,
      "episode/steps": 1,
    })
  })

  it("describe the distribution of credit", async () => {
    // Steps a, b and a of one task: a group of two and one alone. Returns 1 and 2: the episodes differ.
    expect(metrics).toMatchObject({
      "step-group/count": 2,
      "step-group/size": 1.5,
      "step-group/singletons": 1 / 3,
      // 0.95 and 2, of two episodes.
      "step-group/nonzero": 2 / 3,
      "step-group/nonzero-across": 2 / 3,
      "group/constant": 0,
    })
    expect(metrics["advantage/std"]).toBeGreaterThan(0)
    expect(Object.keys(await metricsOf(groups, grpo({}))).filter((name) => name.startsWith("step-group/"))).toEqual([])
  })
})

describe("the metrics of updates", () => {
  const loss = (value: number): LossReport => ({
    loss: value,
    tokens: 10,
    metrics: {
      "loss/kl": 0.5,
      "policy/entropy": 2 * value,
      "policy/clip-fraction": 0.25,
      "policy/kl": 0.125,
      "policy/ratio": 1,
    },
  })

  it("average losses over batches and gradients over completed steps", async () => {
    const steps = [
      { gradientNorm: 1, skipped: false },
      { gradientNorm: Number.POSITIVE_INFINITY, skipped: true },
      { gradientNorm: 3, skipped: false },
    ]
    expect(updateMetrics({ losses: [loss(1), loss(2), loss(6)], steps, learningRate: 0.01 })).toEqual({
      "loss/policy": 3,
      "loss/kl": 0.5,
      "policy/entropy": 6,
      "policy/clip-fraction": 0.25,
      "policy/kl": 0.125,
      "policy/ratio": 1,
      "optimizer/steps": 2,
      "optimizer/skipped": 1,
      "optimizer/gradient-norm": 2,
      "optimizer/learning-rate": 0.01,
    })
  })

  it("weight the metrics of batches by their tokens", async () => {
    const one = { loss: 1, tokens: 30, metrics: { "policy/kl": 0.1, "own/few": 2 } }
    const other = { loss: 2, tokens: 10, metrics: { "policy/kl": 0.5 } }
    const found = updateMetrics({ losses: [one, other], steps: [], learningRate: 0.01 })
    expect(found).toMatchObject({ "policy/kl": expect.closeTo(0.2, 12), "own/few": 2, "loss/policy": 1.5 })
  })

  it("exclude batches without computed tokens, and are absent if no batch is left", async () => {
    const empty: LossReport = { loss: 0, tokens: 0, metrics: { "policy/ratio": 0, "loss/kl": 0 } }
    const step = { gradientNorm: 1, skipped: false }
    const totals = { steps: [step], learningRate: 0.01 }
    expect(updateMetrics({ ...totals, losses: [loss(2), empty] })).toEqual(
      updateMetrics({ ...totals, losses: [loss(2)] }),
    )
    expect(updateMetrics({ ...totals, losses: [empty] })).toEqual({
      "optimizer/steps": 1,
      "optimizer/skipped": 0,
      "optimizer/gradient-norm": 1,
      "optimizer/learning-rate": 0.01,
    })
  })

  it("of a critic are absent if it took no step", async () => {
    const steps = [{ gradientNorm: Number.NaN, skipped: true }]
    expect(criticMetrics({ losses: [], steps })).toEqual({ "critic/skipped": 1 })
  })
})

describe("the stopwatch", () => {
  it("splits an iteration into its parts", async () => {
    const clock = new Stopwatch()
    clock.lap("rollout")
    clock.lap("update")
    const metrics = clock.metrics(collectSteps(groups))
    expect(Object.keys(metrics)).toEqual(["time/rollout", "time/update", "time/iteration", "time/tokens-per-second"])
    expect(metrics["time/rollout"]! + metrics["time/update"]!).toBeLessThanOrEqual(metrics["time/iteration"]!)
    // Three steps of five tokens.
    expect(metrics["time/tokens-per-second"]! * metrics["time/iteration"]!).toBeCloseTo(15, 6)
  })
})
