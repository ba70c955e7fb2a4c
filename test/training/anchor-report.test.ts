import { describe, expect, it } from "vitest"
import type { Episode } from "../../src/rollout/episode.ts"
import { anchorCoverage } from "../../src/training/anchor-report.ts"
import { episode, step } from "./episodes.ts"

const plays = (anchors: string, reward: number, changes: Partial<Episode> = {}) =>
  episode(
    anchors.split(" ").map((anchor, index, all) => step(anchor, index + 1 === all.length ? reward : 0)),
    changes,
  )
const groups = (...all: readonly (readonly Episode[])[]) =>
  all.map((episodes, index) => ({ task: index, index, episodes }))

describe("the anchor report", () => {
  it("counts states within their group, between its episodes, and after the first steps", () => {
    const report = anchorCoverage(
      groups(
        [plays("a b c", 1), plays("a b b", 0), plays("a x", 9, { outcome: "failed" })],
        [plays("a d", 1), plays("e e", 1)],
      ),
      { frequent: 2 },
    )
    expect(report).toEqual({
      ...{ groups: 2, constant: 1, episodes: 4, unscored: 1, steps: 10, states: 6 },
      // Step groups: a a | b b b | c, and a | d | e e.
      ...{ grouped: 0.7, shared: 0.5, sharedLater: 0.5, sharedNormalized: 0.5 },
      // Discounted: 0.9025 0 | 0.95 0 0 | 1, and 0.95 | 1 | 0.95 1.
      ...{ nonzero: 0.7, nonzeroAcross: 0.5, truncated: 0 },
      frequent: [
        { anchor: "a", steps: 3, episodes: 3, groups: 2 },
        { anchor: "b", steps: 3, episodes: 2, groups: 1 },
      ],
      finding: {
        compares: true,
        text: "50.0 % of the steps after the first were taken in a state that also occurs in another episode of the group.",
      },
    })
  })

  it("compares: by discount, with an expert, and among successes", () => {
    const cut = { outcome: "truncated", metrics: { success: 0 } } as const
    const played = groups(
      [plays("a b b c", 1, { metrics: { success: 1 } }), plays("a b a b a", 0, cut)],
      [plays("d d", 1, { metrics: { success: 1 } })],
    )
    const report = anchorCoverage(played, { expertSteps: [3, undefined] })
    expect(report).toMatchObject({ length: 9 / 6, loopSteps: 2 / 6, truncated: 1 / 3, nearLimit: 0 })
    // a a a a | b b b b | c, and d d.
    expect(report).toMatchObject({ nonzero: 10 / 11, nonzeroAcross: 8 / 11 })
    expect(anchorCoverage(played, { gamma: 1 })).toMatchObject({ nonzero: 8 / 11, nonzeroAcross: 8 / 11 })
    expect(() => anchorCoverage(played, { expertSteps: [0] })).toThrow(/expertSteps must be a list of numbers of steps/)
  })

  it.each<[what: string, episodes: Episode[], finding: RegExp]>([
    ["nothing was played", [], /^No episode has a step/],
    ["all ends are alike", [plays("a b", 1), plays("a b", 1)], /have the same return, so all advantages are 0/],
    ["there is one step", [plays("a", 1), plays("a", 0)], /^All episodes have a single step.*those of GRPO\.$/],
    [
      "only beginnings meet",
      [plays("a b", 1), plays("a c", 0)],
      /^GiGPO can compare only the first steps .*step\(\{ anchor/,
    ],
    [
      "an episode meets itself alone",
      [plays("a b b", 1), plays("a c c", 0)],
      /^GiGPO can compare only the first steps/,
    ],
    [
      "all anchors are one",
      [plays("a a", 1), plays("a a", 0)],
      /^All steps of a group have the same anchor.*Report the anchor state/,
    ],
    [
      "times are in the way",
      [plays("a at:2026-01-02T03:04:05Z", 1), plays("a at:2026-01-02T03:04:06Z", 0)],
      /only the first steps .* Without times, UUIDs and call ids the share would be 100\.0 %: set agent\.normalize, or/,
    ],
  ])("says that GiGPO can compare nothing where %s, and what to do", (_, episodes, text) => {
    const { finding } = anchorCoverage(groups(episodes))
    expect(finding).toEqual({ compares: false, text: expect.stringMatching(text) })
  })

  it("warns if few steps are comparable", () => {
    const other = Array.from({ length: 12 }, (_, i) => `o${i}`).join(" ")
    const { finding, sharedLater } = anchorCoverage(groups([plays(`a b ${other}`, 1), plays("a b c", 0)]))
    expect(sharedLater).toBeCloseTo(2 / 15, 10)
    expect(finding.text).not.toContain("This is a low share")
    const more = anchorCoverage(groups([plays(`a b ${other} ${other.replaceAll("o", "p")}`, 1), plays("a b c", 0)]))
    expect(more.finding).toMatchObject({
      compares: true,
      text: expect.stringContaining("This is a low share. Report the anchor state"),
    })
  })

  it("groups similar states if configured", () => {
    const played = groups([plays("a kitchen-1", 1), plays("a kitchen-2", 0)])
    expect(anchorCoverage(played).sharedLater).toBe(0)
    expect(anchorCoverage(played, { similarity: 0.8 }).sharedLater).toBe(1)
    expect(anchorCoverage(played, { similarity: { threshold: 0.99 } }).sharedLater).toBe(0)
    expect(() => anchorCoverage(played, { similarty: 1 } as never)).toThrow(/did you mean similarity\?/)
  })
})
