import { describe, expect, it } from "vitest"
import { amendCredit, asEstimator } from "../../src/credit/as-estimator.ts"
import { batchOf } from "../../src/credit/batch.ts"
import { checkCredit } from "../../src/credit/check-credit.ts"
import { advantageMetrics } from "../../src/credit/diagnostics.ts"
import type { Credit, Estimator, EstimatorContext } from "../../src/credit/estimator.ts"
import { gigpo, gigpoAdvantages } from "../../src/credit/gigpo.ts"
import { grpo, grpoAdvantages, rloo } from "../../src/credit/grpo.ts"
import { Random } from "../../src/random.ts"
import { episode } from "./steps.ts"

const at = (iteration: number): EstimatorContext => ({ moment: { iteration, iterations: 10 }, random: new Random(0) })

const steps = [
  ...episode("t", "a", [
    ["s0", 0],
    ["s1", 0, false],
    ["s2", 10],
  ]),
  ...episode("t", "b", [
    ["s0", 0],
    ["s9", 3],
  ]),
  ...episode("u", "a", [["s0", 1]]),
  ...episode("u", "b", [["s0", 1]]),
]
const batch = batchOf(steps)

const bad = (message: RegExp) =>
  expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) })
const nonFinite = (message: RegExp) =>
  expect.objectContaining({ code: "NON_FINITE", message: expect.stringMatching(message) })

describe("gigpo", () => {
  it("gives the credit of gigpoAdvantages, with its details and metrics", async () => {
    for (const placement of ["reward", "row"] as const) {
      const options = { gamma: 0.9, omega: 0.5, invalidActionPenalty: 0.2, penaltyPlacement: placement }
      const { advantages, metrics, details } = await gigpo(options).estimate(batch, at(0))
      const { diagnostics, advantages: wanted, ...wantedDetails } = gigpoAdvantages(steps, options)
      expect(advantages).toEqual(wanted)
      expect(details).toEqual(wantedDetails)
      expect(metrics).toEqual({
        "group/constant": 1 / 2,
        "step-group/count": diagnostics.stepGroups,
        "step-group/size": diagnostics.meanStepGroupSize,
        "step-group/singletons": diagnostics.singletonShare,
        "advantage/step-share": diagnostics.stepShare,
      })
    }
  })

  it("takes numbers that change over the run", async () => {
    const moving = gigpo({
      omega: { from: 0, to: 1 },
      gamma: ({ iteration }) => 0.5 + iteration / 100,
      invalidActionPenalty: { from: 1, to: 0, over: 5 },
    })
    const found = await moving.estimate(batch, at(2))
    expect(found.advantages).toEqual(
      gigpoAdvantages(steps, { omega: 0.2, gamma: 0.52, invalidActionPenalty: 0.6 }).advantages,
    )
    const wrong = gigpo({ omega: ({ iteration }) => (iteration === 0 ? 1 : NaN) })
    expect(() => wrong.estimate(batch, at(1))).toThrow(
      bad(/omega must be .* its schedule gave NaN in iteration 2 of 10/),
    )
  })

  it("refuses options as soon as it is made", () => {
    expect(() => gigpo({ gamma: 2 })).toThrow(bad(/gamma must be above 0 and at most 1, not 2/))
    expect(() => gigpo({ similarity: 1.5 })).toThrow(bad(/similarity must be above 0 and at most 1.* not 1.5/))
    expect(() => gigpo({ omga: 1 } as object)).toThrow(bad(/omga is not an option; did you mean omega/))
  })
})

describe("grpo and rloo", () => {
  it("give the credit of grpoAdvantages", async () => {
    const { advantages, metrics, details } = await grpo().estimate(batch, at(0))
    expect(advantages).toEqual(grpoAdvantages(steps).advantages)
    expect(metrics).toEqual({ "group/constant": 1 / 2 })
    expect(details).toEqual({ episodeReturns: Float64Array.of(10, 10, 10, 3, 3, 1, 1) })
    const leftOut = await rloo().estimate(batch, at(0))
    expect(leftOut.advantages).toEqual(Float64Array.of(7, 7, 7, -7, -7, 0, 0))
    expect([grpo().name, rloo().name]).toEqual(["grpo", "rloo"])
  })

  it("need no anchors", async () => {
    const bare = batchOf(steps.map(({ anchor: _, ...step }) => step))
    expect((await grpo().estimate(bare, at(0))).advantages).toEqual(grpoAdvantages(steps).advantages)
  })

  it("report 0 for no steps", async () => {
    expect((await grpo().estimate(batchOf([]), at(0))).metrics).toEqual({ "group/constant": 0 })
  })
})

describe("advantageMetrics", () => {
  it("are of the steps that are learned, or of their tokens", () => {
    const perStep = advantageMetrics({ advantages: Float64Array.of(1, 100, 3), skip: Uint8Array.of(0, 1, 0) })
    expect(perStep).toEqual({ "advantage/mean": 2, "advantage/std": Math.SQRT2 })
    const advantages = [Float32Array.of(1, 3), Float32Array.of(50), Float32Array.of(2)]
    expect(advantageMetrics({ advantages, skip: Uint8Array.of(0, 1, 0) })).toEqual({
      "advantage/mean": 2,
      "advantage/std": 1,
    })
    expect(advantageMetrics({ advantages: Float64Array.of(1), skip: Uint8Array.of(1) })).toEqual({
      "advantage/mean": 0,
      "advantage/std": 0,
    })
  })

  it("are those of the diagnostics", () => {
    const { advantages, diagnostics } = gigpoAdvantages(steps)
    expect(advantageMetrics({ advantages })).toEqual({
      "advantage/mean": diagnostics.advantageMean,
      "advantage/std": diagnostics.advantageStd,
    })
  })
})

describe("amendCredit", () => {
  it("changes the credit of an estimator and keeps its needs and memory", async () => {
    let memory = 0
    const under: Estimator = {
      name: "under",
      needs: ["value"],
      estimate: () => ({ advantages: new Float64Array(batch.length).fill(++memory), metrics: { "a/b": 1 } }),
      state: () => ({ json: memory }),
      restore: ({ json }) => {
        memory = json as number
      },
    }
    const amended = amendCredit(under, {
      name: "over",
      needs: ["entropy", "value"],
      change: (credit, { length }, { moment }) => ({
        ...credit,
        advantages: (credit.advantages as Float64Array).map((a) => a + moment.iteration),
        skip: new Uint8Array(length),
      }),
    })
    amended.restore!({ json: 4 })
    expect(await amended.estimate(batch, at(3))).toEqual({
      advantages: new Float64Array(batch.length).fill(8),
      metrics: { "a/b": 1 },
      skip: new Uint8Array(batch.length),
    })
    expect(amended).toMatchObject({ name: "over", needs: ["value", "entropy"] })
    expect(amended.state!()).toEqual({ json: 5 })
    expect(amendCredit(gigpo(), { name: "same", change: (credit) => credit })).not.toHaveProperty("state")
  })
})

describe("asEstimator", () => {
  it("takes an estimator as it is, and a function by its name", () => {
    const estimator = gigpo()
    expect(asEstimator(estimator)).toBe(estimator)
    const flat = (): Credit => ({ advantages: new Float64Array(0) })
    expect(asEstimator(flat)).toEqual({ name: "flat", estimate: flat })
    expect(asEstimator(() => ({ advantages: new Float64Array(0) })).name).toBe("estimator")
  })

  it.each<[unknown, RegExp]>([
    ["gigpo", /of type string; give an estimator, or a function/],
    [null, /of type object/],
    [{ estimate: () => 0 }, /has no name/],
    [{ name: "mine" }, /mine has no function estimate/],
    [{ name: "mine", estimate: () => 0, restore: () => 0 }, /needs both/],
    [{ name: "mine", estimate: () => 0, needs: ["hidden"] }, /needs "hidden"; known are "old", "reference"/],
  ])("refuses %j", (value, message) => {
    expect(() => asEstimator(value as Estimator)).toThrow(bad(message))
  })
})

describe("checkCredit", () => {
  const two = batchOf([
    { task: 0, episode: 0, reward: 0, length: 2 },
    { task: 0, episode: 1, reward: 0 },
  ])
  const advantages = Float64Array.of(1, 2)
  const perToken = [Float32Array.of(1, 2), Float32Array.of(3)]

  it("lets good credit pass, whatever a skipped step holds", () => {
    checkCredit({ advantages }, two, "mine")
    checkCredit({ advantages: perToken, returns: perToken, weights: perToken }, two, "mine")
    checkCredit(
      { advantages, clipScale: Float64Array.of(0, 2), metrics: { a: 1 }, details: { b: advantages } },
      two,
      "mine",
    )
    checkCredit({ advantages: Float64Array.of(1, NaN), skip: Uint8Array.of(0, 1) }, two, "mine")
    checkCredit({ advantages: [perToken[0]!, new Float32Array(9)], skip: Uint8Array.of(0, 1) }, two, "mine")
  })

  it.each<[string, unknown, unknown]>([
    ["nothing", undefined, bad(/^The estimator mine gave undefined instead of credit/)],
    ["no advantages", {}, bad(/neither a Float64Array/)],
    ["float32 a step", { advantages: Float32Array.of(1, 2) }, bad(/neither a Float64Array/)],
    ["too few", { advantages: Float64Array.of(1) }, bad(/1 advantages for 2 steps/)],
    ["a broken number", { advantages: Float64Array.of(1, NaN) }, nonFinite(/advantages of NaN for step 1/)],
    ["too few lists", { advantages: [perToken[0]] }, bad(/advantages of 1 steps, not of 2/)],
    ["lists of another length", { advantages: [perToken[0], perToken[0]] }, bad(/step 1 .* of its 1 tokens/)],
    ["lists of another type", { advantages: [[1, 2], perToken[1]] }, bad(/step 0 that are no Float32Array of its 2/)],
    [
      "a broken token",
      { advantages: [Float32Array.of(1, Infinity), perToken[1]] },
      nonFinite(/Infinity for token 1 of step 0/),
    ],
    ["broken returns", { advantages, returns: [perToken[0], Float32Array.of(NaN)] }, nonFinite(/returns of NaN/)],
    ["weights a step", { advantages, weights: advantages }, bad(/weights that are no list/)],
    ["a skip of another type", { advantages, skip: [0, 1] }, bad(/skip that is no Uint8Array of 2/)],
    ["a skip of 2", { advantages, skip: Uint8Array.of(0, 2) }, bad(/skip of 2 for step 1/)],
    ["a negative width", { advantages, clipScale: Float64Array.of(1, -1) }, bad(/clipScale of -1 for step 1/)],
    ["a width a list", { advantages, clipScale: [1, 1] }, bad(/clipScale that is no Float64Array/)],
    ["rows that are none", { advantages, extraRows: [{ tokens: [1] }] }, bad(/extraRows\[0\]/)],
    ["a broken metric", { advantages, metrics: { "a/b": NaN } }, nonFinite(/metric "a\/b" as NaN/)],
    ["a detail of another length", { advantages, details: { a: new Int32Array(1) } }, bad(/detail "a"/)],
  ])("refuses %s", (_, credit, error) => {
    expect(() => checkCredit(credit as Credit, two, "mine")).toThrow(error)
  })
})
