import { describe, expect, expectTypeOf, it } from "vitest"
import { gigpoAdvantages } from "../../src/credit/gigpo.ts"
import { grpoAdvantages } from "../../src/credit/grpo.ts"
import { gigpoPresets } from "../../src/credit/presets.ts"
import type { GrpoOptions, GrpoResult, GrpoStep } from "../../src/credit/types.ts"
import { expectClose } from "./close.ts"
import { episode } from "./steps.ts"

const steps = [
  ...episode("t", "a", [
    ["s", 1],
    ["u", 2, false],
  ]),
  ...episode("t", "b", [
    ["s", 0],
    ["v", 1],
    ["w", 0],
  ]),
  ...episode("t", "c", [["s", 2]]),
]

describe("grpoAdvantages", () => {
  it("gives every step the advantage of its episode, as computed by hand", () => {
    // Returns 3, 1, 2: mean 2, standard deviation 1.
    const unit = 1 / (1 + 1e-6)
    const result = grpoAdvantages(steps)
    expectClose(result.advantages, [unit, unit, -unit, -unit, -unit, 0])
    expect(result.diagnostics).toMatchObject({ episodeGroups: 1, constantEpisodeGroups: 0 })
    expect(result.diagnostics.advantageMean).toBeCloseTo(-unit / 6, 12)
    expectTypeOf(grpoAdvantages).parameter(0).toEqualTypeOf<readonly GrpoStep[]>()
    expectTypeOf(grpoAdvantages).parameter(1).toEqualTypeOf<GrpoOptions | undefined>()
    expectTypeOf(result).toEqualTypeOf<GrpoResult>()
  })

  it("equals the episode level of GiGPO under all common options", () => {
    for (const normalization of ["sample", "none", "leaveOneOut"] as const)
      for (const episodeStatistics of ["episodes", "steps"] as const)
        for (const penaltyPlacement of ["reward", "step"] as const) {
          const options = { normalization, episodeStatistics, penaltyPlacement, invalidActionPenalty: 0.3 }
          expect(grpoAdvantages(steps, options).advantages).toEqual(gigpoAdvantages(steps, options).episodeAdvantages)
        }
  })

  it("needs no anchors", () => {
    const bare: GrpoStep[] = [
      { task: 0, episode: 0, reward: 1 },
      { task: 0, episode: 1, reward: 0 },
    ]
    expectClose(grpoAdvantages(bare, { normalization: "none" }).advantages, [0.5, -0.5])
    expectTypeOf<{ task: number; episode: number; reward: number }>().not.toExtend<
      Parameters<typeof gigpoAdvantages>[0][0]
    >()
  })

  it("accepts presets of GiGPO and ignores their step level", () => {
    expectClose(grpoAdvantages(steps, { ...gigpoPresets.verlAgent, normalization: "none" }).advantages, [
      // Row scores 3, 2.9, 1, 1, 1, 2: mean 10.9 / 6.
      ...[3, 2.9, 1, 1, 1, 2].map((score) => score - 10.9 / 6),
    ])
  })

  it("rejects what GiGPO rejects", () => {
    expect(() => grpoAdvantages([{ task: 0, episode: 0, reward: Number.NaN }])).toThrow(
      expect.objectContaining({ code: "NON_FINITE" }),
    )
    expect(() => grpoAdvantages([], { normalization: "batch" as "sample" })).toThrow(
      expect.objectContaining({ code: "BAD_ARGUMENT" }),
    )
    expect(grpoAdvantages([]).advantages).toHaveLength(0)
  })
})
