import { countGroups } from "../credit/statistics.ts"
import { type Episode, isScored } from "../rollout/episode.ts"
import { isSolved } from "./summary.ts"

/** Effect of the step limit on episodes. */
export interface LimitShares {
  /** Share of truncated episodes. */
  readonly truncated: number
  /** Share of successful episodes that took more than 4/5 of the step limit. Absent without a successful or without a truncated episode. */
  readonly nearLimit?: number
}

/** Measures the effect of the step limit, which is taken from the longest truncated episode. Failed and excluded episodes count in `truncated` only. */
export function limitShares(episodes: readonly Episode[]): LimitShares {
  const cut = episodes.filter(({ outcome }) => outcome === "truncated")
  const won = episodes.filter(isSolved)
  const limit = cut.reduce((longest, { steps }) => Math.max(longest, steps.length), 0)
  const late = won.filter(({ steps }) => steps.length > lastFifth * limit).length
  return {
    truncated: episodes.length === 0 ? 0 : cut.length / episodes.length,
    ...(won.length > 0 && limit > 0 && { nearLimit: late / won.length }),
  }
}

const lastFifth = 4 / 5

/**
 * Returns the share of the steps of successful episodes that belong to loops. Loops are removed from the states of an episode, also those
 * of a step that changed nothing. The remaining steps are the loop-erased walk (Lawler, 1980), which continues from each state as after its
 * last visit. Takes linear time.
 *
 * @param episodes - episodes in the order in which their steps were collected (`learnedEpisodes`).
 * @param states - dense ids of the states of all their steps, [steps].
 * @returns undefined without a successful episode
 */
export function loopShare(episodes: Iterable<{ readonly episode: Episode }>, states: Int32Array): number | undefined {
  const lastVisit = new Int32Array(countGroups(states))
  let [steps, useful, end] = [0, 0, 0]
  for (const { episode } of episodes) {
    const begin = end
    end += episode.steps.length
    if (!isSolved(episode)) continue
    steps += end - begin
    for (let step = begin; step < end; step++) lastVisit[states[step]!] = step
    for (let step = begin; step < end; step = lastVisit[states[step]!]! + 1) useful++
  }
  return steps === 0 ? undefined : (steps - useful) / steps
}

/**
 * Returns the total number of steps of the scored episodes, divided by that of an expert.
 *
 * @param groups - episodes of each group.
 * @param needed - steps in which an expert solved each group's task, [groups]. A group with undefined is left out.
 * @returns undefined if no group can be compared
 */
export function lengthAgainst(
  groups: readonly (readonly Episode[])[],
  needed: readonly (number | undefined)[],
): number | undefined {
  let [taken, enough] = [0, 0]
  for (const [group, episodes] of groups.entries()) {
    const steps = needed[group]
    if (steps === undefined) continue
    for (const episode of episodes.filter(isScored)) {
      taken += episode.steps.length
      enough += steps
    }
  }
  return enough === 0 ? undefined : taken / enough
}
