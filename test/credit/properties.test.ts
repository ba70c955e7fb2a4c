import { describe, expect, it } from "vitest"
import { gigpoAdvantages } from "../../src/credit/gigpo.ts"
import type { GigpoOptions, GigpoStep } from "../../src/credit/types.ts"
import { Random } from "../../src/util/random.ts"
import { expectClose } from "./close.ts"
import { episode, interleave } from "./steps.ts"

/** 4 tasks of 1 to 8 episodes of 1 to 12 steps, in a world of few states so that groups form. */
function randomEpisodes(random: Random): GigpoStep[][] {
  const rewards = [0, 0, 0, 0.1, -0.25, 1, 10]
  return Array.from({ length: 4 }, (_, task) =>
    Array.from({ length: 1 + random.below(8) }, (_, id) =>
      episode(
        task,
        id,
        Array.from({ length: 1 + random.below(12) }, () => [
          `state ${random.below(6)}`,
          rewards[random.below(rewards.length)]!,
          random.below(5) > 0,
        ]),
      ),
    ),
  ).flat()
}

const everyOption: GigpoOptions[] = (["sample", "none", "leaveOneOut"] as const).flatMap((normalization) =>
  (["episodes", "steps"] as const).flatMap((episodeStatistics) =>
    (["reward", "step"] as const).map((penaltyPlacement) => ({
      normalization,
      episodeStatistics,
      penaltyPlacement,
      singletonEpisode: "raw",
      invalidActionPenalty: 0.1,
    })),
  ),
)

describe.each(everyOption)(
  "with $normalization over $episodeStatistics and the penalty in the $penaltyPlacement",
  (options) => {
    const seeds = Array.from({ length: 20 }, (_, seed) => new Random(seed))

    it("advantages do not depend on the order of episodes or on interleaving", () => {
      for (const random of seeds) {
        const episodes = randomEpisodes(random)
        const inOrder = episodes.flat()
        const expected = gigpoAdvantages(inOrder, options)
        for (const other of [random.shuffled(episodes).flat(), interleave(episodes, random)]) {
          const actual = gigpoAdvantages(other, options)
          const place = new Map(other.map((step, i) => [step, i]))
          for (const name of ["advantages", "episodeAdvantages", "stepAdvantages", "returns"] as const)
            expectClose(
              inOrder.map((step) => actual[name][place.get(step)!]!),
              expected[name],
              1e-9,
            )
        }
      }
    })

    it("the step advantages of each step group sum to 0", () => {
      for (const random of seeds) {
        const { stepAdvantages, stepGroups, diagnostics } = gigpoAdvantages(randomEpisodes(random).flat(), options)
        const sums = new Float64Array(diagnostics.stepGroups)
        stepGroups.forEach((group, i) => {
          sums[group]! += stepAdvantages[i]!
        })
        expectClose(sums, new Float64Array(sums.length), 1e-9)
        expect(stepAdvantages.some((value) => value !== 0)).toBe(true)
      }
    })

    it("equal returns give exactly 0, whatever their size and number", () => {
      for (let members = 2; members <= 32; members++)
        for (const reward of [10, 5.987, 0.1, 1e-12, -3e7]) {
          const same = Array.from({ length: members }, (_, id) =>
            episode("t", id, [
              ["a", 0],
              ["b", reward / 7],
              ["c", 0],
              ["d", reward],
            ]),
          )
          const { advantages, diagnostics } = gigpoAdvantages(same.flat(), options)
          expect(advantages.every((value) => Object.is(value, 0))).toBe(true)
          expect(diagnostics).toMatchObject({ constantEpisodeGroups: 1, constantStepGroups: 4 })
        }
    })
  },
)

describe("the guard for constant groups", () => {
  it("detects equal values despite rounding", () => {
    const steps = [
      ...episode("t", "a", [
        ["x", 0.1],
        ["y", 0.2],
        ["z", 0.3],
      ]),
      ...episode("t", "b", [
        ["u", 0.3],
        ["v", 0.2],
        ["w", 0.1],
      ]),
    ]
    expect(0.1 + 0.2 + 0.3).not.toBe(0.3 + 0.2 + 0.1)
    expect([...gigpoAdvantages(steps).episodeAdvantages]).toEqual([0, 0, 0, 0, 0, 0])
  })

  it("keeps a small difference between large returns", () => {
    const steps = [...episode("t", "a", [["x", 1000]]), ...episode("t", "b", [["y", 1000.0001]])]
    const expected = 5e-5 / (1e-4 / Math.SQRT2 + 1e-6)
    expectClose(gigpoAdvantages(steps).episodeAdvantages, [-expected, expected], 1e-6)
  })
})
