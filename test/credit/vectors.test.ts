import { existsSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { gigpoAdvantages } from "../../src/credit/gigpo.ts"
import { gigpoPresets } from "../../src/credit/presets.ts"
import { quickRatio, realQuickRatio, similarityRatio } from "../../src/credit/similarity.ts"
import type { GigpoOptions } from "../../src/credit/types.ts"
import { expectClose } from "./close.ts"

interface Vectors {
  cases: {
    name: string
    gamma: number
    omega: number
    invalid_action_penalty_coef: number
    similarity_thresh?: number
    steps: { task: string; traj: string; anchor: string; reward: number; valid: boolean }[]
    expected: Record<string, Expected>
  }[]
  sequence_matcher_ratio: {
    a: string
    b: string
    ratio: number
    ratio_autojunk_off: number
    quick_ratio: number
    real_quick_ratio: number
  }[]
}

interface Expected {
  step_return: number[]
  step_group: number[]
  A_E: number[]
  A_S: number[]
  advantage: number[]
}

/** The file's names for the conventions. All of them keep the raw score of a lone episode. */
const perEpisode = { episodeStatistics: "episodes", singletonEpisode: "raw", penaltyPlacement: "step" } as const
const conventions: Record<string, GigpoOptions> = {
  "verl_agent.mean_std_norm": { ...gigpoPresets.verlAgent, normalization: "sample" },
  "verl_agent.mean_norm": { ...gigpoPresets.verlAgent, normalization: "none" },
  "paper.mean_std_norm": { ...perEpisode, normalization: "sample" },
  "paper.mean_norm": { ...perEpisode, normalization: "none" },
  "paper_strict.mean_std_norm": { ...perEpisode, penaltyPlacement: "reward", normalization: "sample" },
  "paper_strict.mean_norm": { ...perEpisode, penaltyPlacement: "reward", normalization: "none" },
  "steps.loo": { ...gigpoPresets.verlAgent, normalization: "leaveOneOut" },
  "trajectories.loo": { ...perEpisode, normalization: "leaveOneOut" },
}

/** The file itself is 1.8e-9 off where the exact answer is 0. */
const TOLERANCE = 1e-8

const file = new URL("../../../shared/vectors/gigpo.json", import.meta.url)
const vectors: Vectors = existsSync(file)
  ? JSON.parse(readFileSync(file, "utf8"))
  : { cases: [], sequence_matcher_ratio: [] }

describe.skipIf(!existsSync(file))("independent vectors (skipped where ../shared is absent)", () => {
  it("exist", () => {
    expect(vectors.cases.length).toBeGreaterThanOrEqual(6)
    expect(vectors.sequence_matcher_ratio.length).toBeGreaterThanOrEqual(8)
  })

  for (const { name, steps, expected, ...given } of vectors.cases)
    it.each(Object.keys(conventions))(`${name} computes the advantages of %s`, (convention) => {
      const { step_return, step_group, A_E, A_S, advantage } = expected[convention]!
      const result = gigpoAdvantages(
        steps.map(({ traj, ...step }) => ({ ...step, episode: traj })),
        {
          ...conventions[convention],
          gamma: given.gamma,
          omega: given.omega,
          invalidActionPenalty: given.invalid_action_penalty_coef,
          ...(given.similarity_thresh !== undefined && { similarity: given.similarity_thresh }),
        },
      )
      expectClose(result.returns, step_return, TOLERANCE)
      expect([...result.stepGroups]).toEqual(step_group)
      expectClose(result.episodeAdvantages, A_E, TOLERANCE)
      expectClose(result.stepAdvantages, A_S, TOLERANCE)
      expectClose(result.advantages, advantage, TOLERANCE)
      if (name === "all_equal_outcomes") expect([...result.advantages]).toEqual(steps.map(() => 0))
    })

  it("agree on similarity ratios and their bounds", () => {
    for (const { a, b, ...expected } of vectors.sequence_matcher_ratio)
      expect({
        ratio: similarityRatio(a, b),
        ratio_autojunk_off: similarityRatio(a, b, { autojunk: false }),
        quick_ratio: quickRatio(a, b),
        real_quick_ratio: realQuickRatio(a, b),
      }).toMatchObject({
        ratio: expected.ratio,
        ratio_autojunk_off: expected.ratio_autojunk_off,
        quick_ratio: expected.quick_ratio,
        real_quick_ratio: expected.real_quick_ratio,
      })
  })
})
