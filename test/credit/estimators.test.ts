import { describe, expect, it } from "vitest"
import { asEstimator, estimate, wrapEstimator } from "../../src/credit/as-estimator.ts"
import { toBatch } from "../../src/credit/batch.ts"
import { checkCredit } from "../../src/credit/check-credit.ts"
import { advantageMetrics } from "../../src/credit/diagnostics.ts"
import type { Credit, Estimator, EstimatorContext } from "../../src/credit/estimator.ts"
import { gigpo, gigpoAdvantages } from "../../src/credit/gigpo.ts"
import { grpo, grpoAdvantages, rloo } from "../../src/credit/grpo.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { Random } from "../../src/util/random.ts"
import { episode } from "./steps.ts"

const at = (iteration: number): EstimatorContext => ({ progress: { iteration, iterations: 10 }, random: new Random(0) })

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
const batch = toBatch(steps)

const bad = (message: RegExp) =>
  expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) })
const nonFinite = (message: RegExp) =>
  expect.objectContaining({ code: "NON_FINITE", message: expect.stringMatching(message) })

describe("gigpo", () => {
  it("returns the credit of gigpoAdvantages, with its details and metrics", async () => {
    for (const placement of ["reward", "step"] as const) {
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
        "step-group/nonzero": diagnostics.nonzeroShare,
        "step-group/nonzero-across": diagnostics.nonzeroAcrossShare,
        "advantage/step-share": diagnostics.stepShare,
      })
    }
  })

  it("accepts schedules", async () => {
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
    await expect(estimate(wrong, batch, at(1))).rejects.toThrow(
      bad(/omega must be .* its schedule returned NaN in iteration 2 of 10/),
    )
  })

  it("rejects invalid options when it is created", () => {
    expect(() => gigpo({ gamma: 2 })).toThrow(bad(/gamma must be above 0 and at most 1, not 2/))
    expect(() => gigpo({ similarity: 1.5 })).toThrow(bad(/similarity must be above 0 and at most 1.* not 1.5/))
    expect(() => gigpo({ omga: 1 } as object)).toThrow(bad(/omga is not an option; did you mean omega/))
  })
})

describe("grpo and rloo", () => {
  it("return the credit of grpoAdvantages", async () => {
    const { advantages, metrics, details } = await grpo().estimate(batch, at(0))
    expect(advantages).toEqual(grpoAdvantages(steps).advantages)
    expect(metrics).toEqual({ "group/constant": 1 / 2 })
    expect(details).toEqual({ episodeReturns: Float64Array.of(10, 10, 10, 3, 3, 1, 1) })
    const leftOut = await rloo().estimate(batch, at(0))
    expect(leftOut.advantages).toEqual(Float64Array.of(7, 7, 7, -7, -7, 0, 0))
    expect([grpo().name, rloo().name]).toEqual(["grpo", "rloo"])
  })

  it.each<[() => unknown, RegExp]>([
    [() => grpo({ gamma: 2 } as object), /^grpo: gamma must be above 0 and at most 1, not 2/],
    [() => grpo({ penaltyPlacement: "tax" as "step" }), /^grpo: penaltyPlacement must be/],
    [() => grpoAdvantages([], { omge: 1 } as object), /^grpo: omge is not an option; did you mean omega/],
    [() => rloo({ singletonEpisode: "one" as "raw" }), /^rloo: singletonEpisode must be/],
    [() => rloo({ normalization: "std" } as object), /^rloo: normalization is not an option/],
  ])("reject invalid options, and invalid ones of GiGPO (%s)", (call, message) => {
    expect(call).toThrow(bad(message))
  })

  it("need no anchors", async () => {
    const bare = toBatch(steps.map(({ anchor: _, ...step }) => step))
    expect((await grpo().estimate(bare, at(0))).advantages).toEqual(grpoAdvantages(steps).advantages)
  })

  it("report 0 without steps", async () => {
    expect((await grpo().estimate(toBatch([]), at(0))).metrics).toEqual({ "group/constant": 0 })
  })
})

describe("advantageMetrics", () => {
  it("cover the steps that are learned from, or their tokens", () => {
    const perStep = advantageMetrics({ advantages: Float64Array.of(1, 100, 3), skip: Uint8Array.of(0, 1, 0) })
    expect(perStep).toEqual({ "advantage/mean": 2, "advantage/std": Math.SQRT2 })
    const advantages = [Float32Array.of(1, 3), Float32Array.of(50), Float32Array.of(2)]
    expect(advantageMetrics({ advantages, skip: Uint8Array.of(0, 1, 0) })).toEqual({
      "advantage/mean": 2,
      "advantage/std": 1,
    })
    expect(advantageMetrics({ advantages: Float64Array.of(1), skip: Uint8Array.of(1) })).toEqual({})
  })

  it("equal those of the diagnostics", () => {
    const { advantages, diagnostics } = gigpoAdvantages(steps)
    expect(advantageMetrics({ advantages })).toEqual({
      "advantage/mean": diagnostics.advantageMean,
      "advantage/std": diagnostics.advantageStd,
    })
  })
})

describe("wrapEstimator", () => {
  it("accepts the example of its documentation, with the types shown there", async () => {
    const bolder = wrapEstimator(gigpo(), {
      name: "bolder",
      change: (credit) => ({ ...credit, advantages: credit.advantages.map((a) => 2 * a) }),
    })
    const plain = gigpoAdvantages(steps).advantages
    expect((await bolder.estimate(batch, at(0))).advantages).toEqual(plain.map((a) => 2 * a))
  })

  it("names the function that failed", async () => {
    const broken: Estimator = { name: "under", estimate: () => ({ advantages: new Float64Array(1) }) }
    const amended = wrapEstimator(broken, { name: "over", change: (credit) => credit })
    await expect(estimate(amended, batch, at(0))).rejects.toThrow(bad(/^The estimator under gave 1 advantages/))
    const wrong = wrapEstimator(grpo(), { name: "over", change: () => ({}) as Credit })
    await expect(estimate(wrong, batch, at(0))).rejects.toThrow(bad(/^The estimator over gave advantages that are/))
  })

  it("changes the credit of an estimator and keeps its needs and state", async () => {
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
    const amended = wrapEstimator(under, {
      name: "over",
      needs: ["entropy", "value"],
      change: (credit, { length }, { progress }) => ({
        ...credit,
        advantages: (credit.advantages as Float64Array).map((a) => a + progress.iteration),
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
    expect(wrapEstimator(gigpo(), { name: "same", change: (credit) => credit })).not.toHaveProperty("state")
  })
})

describe("estimate", () => {
  const throwing = (thrown: unknown): Estimator => ({
    name: "mine",
    estimate() {
      throw thrown
    },
  })

  it("returns checked credit", async () => {
    expect(await estimate(grpo(), batch, at(0))).toEqual(grpo().estimate(batch, at(0)))
    const empty: Estimator = { name: "mine", estimate: async () => ({ advantages: new Float64Array(0) }) }
    await expect(estimate(empty, batch, at(0))).rejects.toThrow(bad(/mine gave 0 advantages for 7 steps/))
  })

  it("names the code that threw, but passes GigpoErrors and reasons of aborts", async () => {
    const cause = new TypeError("x is not a function")
    await expect(estimate(throwing(cause), batch, at(0))).rejects.toThrow(
      expect.objectContaining({
        code: "BAD_ARGUMENT",
        message: "The estimator mine threw: x is not a function",
        cause,
      }),
    )
    await expect(estimate(throwing("no"), batch, at(0))).rejects.toThrow(bad(/^The estimator mine threw: no$/))
    const ours = new GigpoError("NON_FINITE", "Of its own.")
    await expect(estimate(throwing(ours), batch, at(0))).rejects.toBe(ours)
    const aborted = { ...at(0), signal: AbortSignal.abort() }
    await expect(estimate(throwing(cause), batch, aborted)).rejects.toBe(cause)
  })
})

describe("asEstimator", () => {
  it("accepts an estimator unchanged, and a function under its name", () => {
    const estimator = gigpo()
    expect(asEstimator(estimator)).toBe(estimator)
    const flat = (): Credit => ({ advantages: new Float64Array(0) })
    expect(asEstimator(flat)).toEqual({ name: "flat", estimate: flat })
    expect(asEstimator(() => ({ advantages: new Float64Array(0) })).name).toBe("estimator")
  })

  it.each<[unknown, RegExp]>([
    ["gigpo", /must be a function \(batch, context\) => credit, or an object with name and estimate, not "gigpo"\.$/],
    [null, /must be a function .*, not empty\.$/],
    [class Mine {}, /^The estimator Mine is a class; give an instance of it, made with `new`\.$/],
    [{ estimate: () => 0 }, /has no name/],
    [{ name: "mine" }, /mine has no function estimate/],
    [{ name: "mine", estimate: () => 0, restore: () => 0 }, /needs both/],
    [{ name: "mine", estimate: () => 0, state: 1, restore: 2 }, /mine has a state that is not a function/],
    [
      { name: "mine", estimate: () => 0, needs: "old" },
      /mine has needs that are not a list; give a list of "old", "reference"/,
    ],
    [{ name: "mine", estimate: () => 0, needs: ["hidden"] }, /needs "hidden"; known: "old", "reference"/],
    [{ name: "mine", estimate: () => 0, needs: ["entropie"] }, /needs "entropie"; did you mean "entropy"\?$/],
  ])("rejects %j", (value, message) => {
    expect(() => asEstimator(value as Estimator)).toThrow(bad(message))
  })
})

/** A row of five tokens with two spans, the second with other values. */
function extraRow(other: object = {}, tokens = new Int32Array(5)) {
  const segments = [
    { start: 1, length: 1, advantage: 2, logProbs: Float32Array.of(-1) },
    { start: 3, length: 2, advantage: Float32Array.of(1, 2), logProbs: Float32Array.of(-1, -2), ...other },
  ]
  return { tokens, segments }
}

describe("checkCredit", () => {
  const two = toBatch([
    { task: 0, episode: 0, reward: 0, length: 2 },
    { task: 0, episode: 1, reward: 0 },
  ])
  const advantages = Float64Array.of(1, 2)
  const perToken = [Float32Array.of(1, 2), Float32Array.of(3)]

  it("accepts valid credit, whatever the values of skipped steps", () => {
    checkCredit({ advantages }, two, "mine")
    checkCredit({ advantages: perToken, returns: perToken, weights: perToken }, two, "mine")
    checkCredit(
      { advantages, clipScale: Float64Array.of(0, 2), metrics: { a: 1 }, details: { b: advantages } },
      two,
      "mine",
    )
    checkCredit({ advantages: Float64Array.of(1, NaN), skip: Uint8Array.of(0, 1) }, two, "mine")
    checkCredit({ advantages: [perToken[0]!, new Float32Array(9)], skip: Uint8Array.of(0, 1) }, two, "mine")
    checkCredit({ advantages, extraSequences: [extraRow()] }, two, "mine")
    checkCredit(
      new (class Mine {
        advantages = advantages
        secret = 3
      })(),
      two,
      "mine",
    )
  })

  it.each<[string, unknown, unknown]>([
    ["nothing", undefined, bad(/^The estimator mine gave undefined instead of credit/)],
    ["bare advantages", advantages, bad(/an array instead of credit; return \{ advantages \}\.$/)],
    ["a bare list", perToken, bad(/an array instead of credit/)],
    [
      "a function",
      () => 0,
      bad(/a function instead of credit: call the function that makes the estimator, or export `opt/),
    ],
    ["an estimator that it makes", gigpo(), bad(/an estimator instead of credit: call the function that makes/)],
    [
      "a key of another name",
      { advantages, metric: {} },
      bad(/an unexpected key: "metric" is not known \(did you mean "metrics"\?\)\.$/),
    ],
    ["a key of no name", { advantages, zzzzzzz: {} }, bad(/"zzzzzzz" is not known \(known: advantages, skip,/)],
    ["metrics in a row", { advantages, metrics: [1] }, bad(/metrics that are not an object/)],
    ["no advantages", {}, bad(/neither a Float64Array/)],
    ["float32 a step", { advantages: Float32Array.of(1, 2) }, bad(/neither a Float64Array/)],
    ["too few", { advantages: Float64Array.of(1) }, bad(/1 advantages for 2 steps/)],
    ["a broken number", { advantages: Float64Array.of(1, NaN) }, nonFinite(/advantages of NaN for step 1/)],
    ["too few lists", { advantages: [perToken[0]] }, bad(/advantages of 1 steps, not of 2/)],
    ["lists of another length", { advantages: [perToken[0], perToken[0]] }, bad(/step 1 .* of its 1 tokens/)],
    [
      "lists of another type",
      { advantages: [[1, 2], perToken[1]] },
      bad(/step 0 that are not a Float32Array of its 2/),
    ],
    [
      "a broken token",
      { advantages: [Float32Array.of(1, Infinity), perToken[1]] },
      nonFinite(/Infinity for token 1 of step 0/),
    ],
    ["broken returns", { advantages, returns: [perToken[0], Float32Array.of(NaN)] }, nonFinite(/returns of NaN/)],
    ["weights a step", { advantages, weights: advantages }, bad(/weights that are not a list/)],
    ["a skip of another type", { advantages, skip: [0, 1] }, bad(/skip that is not a Uint8Array of 2/)],
    ["a skip of 2", { advantages, skip: Uint8Array.of(0, 2) }, bad(/skip of 2 for step 1/)],
    ["a negative width", { advantages, clipScale: Float64Array.of(1, -1) }, bad(/clipScale of -1 for step 1/)],
    ["a width a list", { advantages, clipScale: [1, 1] }, bad(/clipScale that is not a Float64Array/)],
    ["rows that are none", { advantages, extraSequences: [{ tokens: [1] }] }, bad(/extraSequences\[0\]/)],
    ["no row", { advantages, extraSequences: [extraRow(), null] }, bad(/extraSequences\[1\] that is not a sequence/)],
    [
      "a row of nothing",
      { advantages, extraSequences: [{ ...extraRow(), segments: [] }] },
      bad(/extraSequences\[0\] without a segment/),
    ],
    ...(
      [
        ["nowhere", { start: undefined }, bad(/without a start and a length/)],
        ["empty", { length: 0 }, bad(/without a start and a length/)],
        ["over another", { start: 1 }, bad(/from token 1 to 2; spans must be in order .* in tokens 1 to 4\.$/)],
        ["beyond the tokens", { start: 4 }, bad(/from token 4 to 5; spans/)],
        ["without credit", { advantage: undefined }, bad(/without an advantage/)],
        [
          "of other credit",
          { advantage: Float32Array.of(1) },
          bad(/without an advantage, .* Float32Array of its 2 tokens/),
        ],
        ["of broken credit", { advantage: NaN }, nonFinite(/advantage of NaN in/)],
        ["without logProbs", { logProbs: undefined }, bad(/without logProbs/)],
        [
          "of other logProbs",
          { logProbs: [-1, -2] },
          bad(/logProbs of .* that are not a Float32Array of its 2 tokens/),
        ],
        ["of broken logProbs", { logProbs: Float32Array.of(-1, NaN) }, nonFinite(/logProbs of NaN in/)],
      ] as const
    ).map(([what, other, error]): [string, unknown, unknown] => [
      `a span ${what}`,
      { advantages, extraSequences: [extraRow(other)] },
      error,
    ]),
    ["a broken metric", { advantages, metrics: { "a/b": NaN } }, nonFinite(/metric "a\/b" as NaN/)],
    ["a detail of another length", { advantages, details: { a: new Int32Array(1) } }, bad(/detail "a"/)],
  ])("rejects %s", (_, credit, error) => {
    expect(() => checkCredit(credit as Credit, two, "mine")).toThrow(error)
  })
})
