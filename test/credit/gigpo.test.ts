import { describe, expect, expectTypeOf, it } from "vitest"
import { gigpoAdvantages } from "../../src/credit/gigpo.ts"
import { gigpoPresets } from "../../src/credit/presets.ts"
import type { GigpoDiagnostics, GigpoOptions, GigpoResult, GigpoStep } from "../../src/credit/types.ts"
import { expectClose } from "./close.ts"
import { episode } from "./steps.ts"

/** Two episodes of one task that part after their first state; the longer one wins. */
const fork = [
  ...episode("t", "a", [
    ["s0", 0],
    ["s1", 0],
    ["s2", 10],
  ]), // returns 9.025, 9.5, 10
  ...episode("t", "b", [
    ["s0", 0],
    ["s9", 0],
  ]), // returns 0, 0
]

describe("gigpoAdvantages", () => {
  it("adds episode and step advantages, as computed by hand", () => {
    const result = gigpoAdvantages(fork)
    const episodeLevel = 5 / (Math.sqrt(50) + 1e-6)
    const stepLevel = 4.5125 / (9.025 / Math.SQRT2 + 1e-6)
    expectClose(result.returns, [9.025, 9.5, 10, 0, 0])
    expectClose(result.episodeAdvantages, [episodeLevel, episodeLevel, episodeLevel, -episodeLevel, -episodeLevel])
    expectClose(result.stepAdvantages, [stepLevel, 0, 0, -stepLevel, 0])
    expectClose(result.advantages, [
      episodeLevel + stepLevel,
      episodeLevel,
      episodeLevel,
      -episodeLevel - stepLevel,
      -episodeLevel,
    ])
    expect([...result.stepGroups]).toEqual([0, 1, 2, 0, 3])
    expectTypeOf(gigpoAdvantages).parameter(0).toEqualTypeOf<readonly GigpoStep[]>()
    expectTypeOf(gigpoAdvantages).parameter(1).toEqualTypeOf<GigpoOptions | undefined>()
    expectTypeOf(result).toEqualTypeOf<GigpoResult>()
    expectTypeOf(result.diagnostics).toEqualTypeOf<GigpoDiagnostics>()
  })

  it("does not divide with normalization none", () => {
    expectClose(gigpoAdvantages(fork, { normalization: "none" }).advantages, [9.5125, 5, 5, -9.5125, -5])
  })

  it("subtracts the mean of the others with normalization leaveOneOut", () => {
    expectClose(gigpoAdvantages(fork, { normalization: "leaveOneOut" }).advantages, [19.025, 10, 10, -19.025, -10])
  })

  it("weights the step level by omega", () => {
    const half = gigpoAdvantages(fork, { normalization: "none", omega: 0.5 })
    expectClose(half.advantages, [7.25625, 5, 5, -7.25625, -5])
    expectClose(half.stepAdvantages, [4.5125, 0, 0, -4.5125, 0])
    expectClose(gigpoAdvantages(fork, { normalization: "none", omega: 0 }).advantages, [5, 5, 5, -5, -5])
  })

  it("weights long episodes more if the statistics are over steps", () => {
    const options = { normalization: "none", episodeStatistics: "steps" } as const
    expectClose(gigpoAdvantages(fork, options).episodeAdvantages, [4, 4, 4, -6, -6])
  })

  it("gives a single episode 0, or its raw return on request", () => {
    const lone = episode("t", "a", [
      ["x", 0],
      ["y", 10],
    ])
    expect([...gigpoAdvantages(lone).advantages]).toEqual([0, 0])
    expect([...gigpoAdvantages(lone, { singletonEpisode: "raw", normalization: "none" }).advantages]).toEqual([10, 10])
    expectClose(gigpoAdvantages(lone, { singletonEpisode: "raw" }).advantages, [10 / 1.000001, 10 / 1.000001])
  })

  it("counts every visit of an episode to a state", () => {
    const loop = [
      ...episode("t", "a", [
        ["k", 0],
        ["h", 0],
        ["k", 0],
        ["k", 0],
      ]),
      ...episode("t", "b", [
        ["k", 0],
        ["goal", 10],
      ]), // returns 9.5, 10
    ]
    const { stepAdvantages } = gigpoAdvantages(loop, { normalization: "none" })
    expectClose(stepAdvantages, [-2.375, 0, -2.375, -2.375, 7.125, 0])
  })

  it("never compares steps or episodes of different tasks", () => {
    const tasks = [
      ...episode(1, 0, [["same", 10]]),
      ...episode(1, 1, [["same", 0]]),
      ...episode("1", 0, [["same", 4]]),
      ...episode("1", 1, [["same", 0]]),
    ]
    const result = gigpoAdvantages(tasks, { normalization: "none" })
    expect([...result.stepGroups]).toEqual([0, 0, 1, 1])
    expect([...result.advantages]).toEqual([10, -10, 4, -4])
  })

  it("applies the invalid-action penalty to the rewards, or only to its row", () => {
    const steps = [
      ...episode("t", "a", [
        ["s", 0, false],
        ["g", 10],
      ]),
      ...episode("t", "b", [
        ["s", 0],
        ["m", 0],
      ]),
    ]
    const options = { normalization: "none", gamma: 0.5, invalidActionPenalty: 1 } as const
    const inReward = gigpoAdvantages(steps, options)
    expectClose(inReward.returns, [4, 10, 0, 0])
    expectClose(inReward.advantages, [4.5 + 2, 4.5, -4.5 - 2, -4.5])
    const onRow = gigpoAdvantages(steps, { ...options, penaltyPlacement: "step" })
    expectClose(onRow.returns, [5, 10, 0, 0])
    expectClose(onRow.advantages, [4.5 + 2, 5.5, -4.5 - 2, -4.5])
  })

  it("groups steps with similar anchors on request", () => {
    const steps = [
      ...episode("t", "a", [["Paris is the capital of France.", 1]]),
      ...episode("t", "b", [["Paris is the capital of France!", 0]]),
      ...episode("t", "c", [["Lyon has two rivers.", 0]]),
    ]
    expect([...gigpoAdvantages(steps).stepGroups]).toEqual([0, 1, 2])
    const similar = gigpoAdvantages(steps, { similarity: 0.9, normalization: "none" })
    expect([...similar.stepGroups]).toEqual([0, 0, 1])
    expect([...similar.stepAdvantages]).toEqual([0.5, -0.5, 0])
    expect([...gigpoAdvantages(steps, { similarity: { threshold: 0.99 } }).stepGroups]).toEqual([0, 1, 2])
  })

  it("ignores padding rows, whatever their values", () => {
    const pad: GigpoStep = { task: "t", episode: "a", anchor: "s0", reward: Number.NaN, padding: true }
    const clean = gigpoAdvantages(fork)
    const padded = gigpoAdvantages([pad, ...fork.slice(0, 2), pad, ...fork.slice(2), pad])
    const kept = [1, 2, 4, 5, 6]
    for (const name of ["advantages", "episodeAdvantages", "stepAdvantages", "returns", "stepGroups"] as const) {
      expect(kept.map((i) => padded[name][i])).toEqual([...clean[name]])
      expect([0, 3, 7].map((i) => padded[name][i])).toEqual(Array(3).fill(name === "stepGroups" ? -1 : 0))
    }
    expect(padded.diagnostics).toEqual(clean.diagnostics)
  })

  it("reports group sizes, shares and moments", () => {
    const { diagnostics } = gigpoAdvantages(fork, { normalization: "none", omega: 2 })
    const advantages = [14.025, 5, 5, -14.025, -5]
    expect(diagnostics).toEqual({
      stepGroups: 4,
      stepGroupSizes: { 1: 3, 2: 1 },
      meanStepGroupSize: 1.25,
      singletonShare: 0.6,
      episodeGroups: 1,
      constantEpisodeGroups: 0,
      constantStepGroups: 0,
      nonzeroShare: 0.4,
      nonzeroAcrossShare: 0.4,
      episodeShare: expect.closeTo(25 / (25 + 18.05), 12),
      stepShare: expect.closeTo(18.05 / (25 + 18.05), 12),
      advantageMean: expect.closeTo(1, 12),
      advantageStd: expect.closeTo(Math.sqrt(advantages.reduce((sum, a) => sum + (a - 1) ** 2, 0) / 4), 12),
    })
  })

  it("counts groups without a learning signal", () => {
    const { diagnostics } = gigpoAdvantages([
      ...episode("won", 0, [
        ["x", 0],
        ["y", 1],
      ]),
      ...episode("won", 1, [
        ["x", 0],
        ["y", 1],
      ]),
      ...episode("split", 0, [["x", 1]]),
      ...episode("split", 1, [["x", 0]]),
      ...episode("lone", 0, [["x", 1]]),
    ])
    expect(diagnostics).toMatchObject({
      episodeGroups: 3,
      constantEpisodeGroups: 1,
      stepGroups: 4,
      constantStepGroups: 2,
      // The two of "split"; those of "won" are worth the same.
      nonzeroShare: 2 / 7,
    })
  })

  it("distinguishes comparisons between episodes from repeated states of one episode", () => {
    const { diagnostics } = gigpoAdvantages([
      // Comes back to x, which is worth more the second time: 0.95² and 1.
      ...episode("loop", 0, [
        ["x", 0],
        ["y", 0],
        ["x", 1],
      ]),
      ...episode("loop", 1, [["z", 0]]),
      // Both were in x, one of them twice.
      ...episode("meet", 0, [
        ["x", 0],
        ["x", 1],
      ]),
      ...episode("meet", 1, [["x", 0]]),
      ...episode("meet", 2, [["y", 0]]),
    ])
    expect(diagnostics).toMatchObject({ nonzeroShare: 5 / 8, nonzeroAcrossShare: 3 / 8 })
  })

  it("returns an empty result for no steps", () => {
    const { diagnostics, ...arrays } = gigpoAdvantages([])
    for (const array of Object.values(arrays)) expect(array).toHaveLength(0)
    expect(Object.values(diagnostics).filter((value) => typeof value === "number")).toEqual(Array(12).fill(0))
    expect(diagnostics.stepGroupSizes).toEqual({})
  })

  it("accepts a preset as options", () => {
    const options = { ...gigpoPresets.verlAgent, normalization: "none" } as const
    const lone = episode("t", "a", [["x", 10, false]])
    expectClose(gigpoAdvantages(lone, options).episodeAdvantages, [9.9])
    expectClose(gigpoAdvantages(fork, options).episodeAdvantages, [4, 4, 4, -6, -6])
    expectTypeOf(gigpoPresets.verlAgent).toEqualTypeOf<GigpoOptions>()
  })
})

describe("gigpoAdvantages rejects", () => {
  const step: GigpoStep = { task: "t", episode: 0, anchor: "s", reward: 0 }

  it.each([Number.NaN, Infinity, -Infinity, 1e101, undefined])("the reward %s, naming the step", (reward) => {
    const steps = [step, { ...step, reward: reward as number }]
    expect(() => gigpoAdvantages(steps)).toThrow(
      expect.objectContaining({
        code: "NON_FINITE",
        message: expect.stringMatching(/^Step 1 \(task "t", episode 0\)/),
      }),
    )
  })

  it.each([
    [{ gamma: 0 }, /gamma must be above 0 and at most 1, not 0/],
    [{ gamma: 1.01 }, /gamma must be above 0 and at most 1, not 1.01/],
    [{ gamma: Number.NaN }, /gamma must be a number, not NaN/],
    [{ gamma: "0.9" }, /gamma/],
    [{ omega: -1 }, /omega must be a number from 0 to 1e\+100, not -1/],
    [{ omega: Infinity }, /omega must be a number from 0 to 1e\+100, not Infinity/],
    [{ invalidActionPenalty: -0.1 }, /invalidActionPenalty/],
    [
      { normalization: "mean" },
      /normalization must be "sample" or "population" or "none" or "leaveOneOut", not "mean"/,
    ],
    [{ episodeStatistics: "rows" }, /episodeStatistics/],
    [{ singletonEpisode: null }, /singletonEpisode/],
    [{ penaltyPlacement: "episode" }, /penaltyPlacement/],
    [{ similarity: 0 }, /similarity must be above 0 and at most 1, or \{ threshold, autojunk \}, not 0/],
    [{ similarity: 1.5 }, /similarity must be above 0 and at most 1, .*, not 1.5/],
    [{ similarity: "0.9" }, /similarity/],
    [{ similarity: { threshold: 0.9, autojunk: 1 } }, /similarity.autojunk must be true or false, not 1/],
    [{ normalisation: "none" }, /normalisation is not an option; did you mean normalization\?/],
  ])("the options %j", (options, message) => {
    expect(() => gigpoAdvantages([step], options as unknown as GigpoOptions)).toThrow(
      expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) }),
    )
  })

  it.each(["task", "episode", "anchor"])("a step without %s", (name) => {
    expect(() => gigpoAdvantages([step, { ...step, [name]: undefined }])).toThrow(
      expect.objectContaining({
        code: "BAD_ARGUMENT",
        message: expect.stringMatching(`Step 1 has an? ${name} of type undefined`),
      }),
    )
  })
})
