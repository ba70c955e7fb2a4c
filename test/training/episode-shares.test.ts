import { describe, expect, it } from "vitest"
import { groupByAnchor } from "../../src/credit/anchors.ts"
import type { Episode } from "../../src/rollout/episode.ts"
import { lengthAgainst, limitShares, loopShare } from "../../src/training/episode-shares.ts"
import { collectSteps, learnedEpisodes } from "../../src/training/steps.ts"
import { episode, step } from "./episodes.ts"

const walk = (anchors: string, changes: Partial<Episode> = {}) =>
  episode(
    anchors.split(" ").map((anchor) => step(anchor, 0)),
    changes,
  )
const won = (anchors: string, changes: Partial<Episode> = {}) => walk(anchors, { metrics: { success: 1 }, ...changes })

/** Of the episodes of one group that can be learned from. */
function wasted(...group: Episode[]): number | undefined {
  const steps = collectSteps([group])
  const states = groupByAnchor(
    steps.map(({ task }) => task),
    steps.map(({ record }) => record.observation.anchor),
  )
  return loopShare(learnedEpisodes([group], 1), states)
}

describe("wasted steps", () => {
  it.each<[what: string, anchors: string, wasted: number]>([
    ["a straight way", "a b c d", 0],
    ["a step that changes nothing", "a b b c", 1],
    ["a loop, from its state's first visit to its last", "a b c d b e", 3],
    ["a loop within a loop, once", "a b c b a d", 4],
    ["a state that is come back to twice", "a b a c a d", 4],
    // a b | a c b d: from a to b a step is needed, whichever.
    ["overlapping loops, except for the steps between them", "a b a c b d", 2],
    ["everything but the last step", "a a a a", 3],
  ])("are those of %s", (_, anchors, count) => {
    expect(wasted(won(anchors))).toBe(count / anchors.split(" ").length)
  })

  it("are those of successful episodes, relative to all their steps", () => {
    const lost = walk("a a a a", { metrics: { success: 0 } })
    const failed = won("a a a a", { outcome: "failed" })
    const untold = walk("a a a a")
    const stepless = won("a", { steps: [], outcome: "overflow" })
    expect(wasted(failed, lost, won("a b b"), stepless, untold, won("b a c d e"))).toBe(1 / 8)
    expect(wasted(lost, failed, untold, stepless)).toBeUndefined()
  })
})

describe("the step limit", () => {
  const cut = walk("a b c d e f g h i j", { outcome: "truncated", metrics: { success: 0 } })

  it("matters for episodes that it truncated, and if successes need its last fifth", () => {
    // Of 10: a success in 8 steps is no late one, one in 9 is.
    const early = won("a b c d e f g h")
    const late = won("a b c d e f g h i")
    const failed = walk("a", { outcome: "failed" })
    expect(limitShares([cut, early, late, late, failed])).toEqual({ truncated: 1 / 5, nearLimit: 2 / 3 })
    expect(limitShares([cut])).toEqual({ truncated: 1 })
  })

  it("is undefined if it truncated nothing", () => {
    expect(limitShares([won("a b c")])).toEqual({ truncated: 0 })
    expect(limitShares([])).toEqual({ truncated: 0 })
  })
})

describe("length relative to an expert", () => {
  it("covers all steps of scored episodes whose task the expert solved", () => {
    const groups = [
      [walk("a b c d"), walk("a b"), walk("a b c d e f g h", { outcome: "failed" })],
      [walk("a b c")],
      [walk("a b c d e f")],
    ]
    expect(lengthAgainst(groups, [2, undefined, 3])).toBe((4 + 2 + 6) / (2 + 2 + 3))
    expect(lengthAgainst(groups, [2])).toBe(6 / 4)
    expect(lengthAgainst(groups, [])).toBeUndefined()
    expect(lengthAgainst([], [1])).toBeUndefined()
  })
})
