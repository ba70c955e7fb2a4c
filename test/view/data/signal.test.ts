import { expect, it } from "vitest"
import type { RecordedEpisode } from "../../../src/view/data/recorded.ts"
import { missingSignal } from "../../../src/view/data/signal.ts"
import { madeGroup } from "../made-run.ts"

const group = (returns: readonly number[], advantage: number, change: Partial<RecordedEpisode> = {}) => {
  const made = madeGroup(1, 0, returns.length)
  const episodes = made.episodes.map((episode, at) => ({
    ...episode,
    ...(at === 0 && change),
    return: returns[at]!,
    steps: episode.steps.map((step) => ({ ...step, advantage })),
  }))
  return { ...made, episodes }
}

it("says why a group of equal returns gives no signal", () => {
  expect(missingSignal(group([0, 0, 0], 0))).toMatch(
    /^All 3 scored .* have the return 0, so .* this group has no gradient/,
  )
  expect(missingSignal(group([1, 1], 0.2))).toMatch(/have the return 1, so .* only differences between states/)
  // A failed episode has no score that could differ.
  expect(missingSignal(group([7, 1, 1], 0, { outcome: "failed" }))).toMatch(/^All 2 scored/)
})

it("says nothing of a group with signal, or without anything to compare", () => {
  for (const one of [group([0, 1], 0.5), group([1], 0), group([], 0), group([2, 1], 0, { outcome: "excluded" })])
    expect(missingSignal(one)).toBeUndefined()
})
