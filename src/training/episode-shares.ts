import { countGroups } from "../credit/statistics.ts"
import { type Episode, isScored } from "../rollout/episode.ts"
import { isSolved } from "./summary.ts"

/** How the limit on steps binds. */
export interface LimitShares {
  /** Share of the episodes that it ended. */
  readonly cut: number
  /** Share of the successes that came in the last fifth of it; absent without a success, or where it ended no episode. */
  readonly late?: number
}

/** The limit is that of the longest episode that was cut off; failed and dropped episodes count in `cut` alone. */
export function limitShares(episodes: readonly Episode[]): LimitShares {
  const cut = episodes.filter(({ outcome }) => outcome === "truncated")
  const won = episodes.filter(isSolved)
  const limit = cut.reduce((longest, { steps }) => Math.max(longest, steps.length), 0)
  const late = won.filter(({ steps }) => steps.length > lastFifth * limit).length
  return {
    cut: episodes.length === 0 ? 0 : cut.length / episodes.length,
    ...(won.length > 0 && limit > 0 && { late: late / won.length }),
  }
}

const lastFifth = 4 / 5

/**
 * Share of the steps of successful episodes that led nowhere: those that are gone once every loop is taken out of the episode's
 * states, one that changed nothing included. What is left is the loop-erased walk (Lawler, 1980): from each state on as after its
 * last visit. Linear in the steps.
 *
 * @param episodes as their steps were collected (`learnedEpisodes`)
 * @param states dense ids of the states of all their steps, [steps]
 * @returns undefined without a success
 */
export function wastedShare(episodes: Iterable<{ readonly episode: Episode }>, states: Int32Array): number | undefined {
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
 * Steps of the episodes against those that a good one needs.
 *
 * @param groups [groups] of episodes
 * @param needed [groups], steps in which an expert solved each group's task; undefined for one that it did not, which is left out
 * @returns how many times as long the scored episodes are, in all; undefined where there is nothing to compare
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
