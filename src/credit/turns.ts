import { countGroups } from "./statistics.ts"

// Positions of steps in their episodes. `episodes` are dense ids, [steps]. Steps of an episode are in time order; episodes may interleave.

/** Index of each step in its episode, from 0, [steps]. */
export function turnsOf(episodes: Int32Array): Int32Array {
  const played = new Int32Array(countGroups(episodes))
  return episodes.map((episode) => played[episode]!++)
}

/** Row of the previous step of the same episode, [steps]; -1 for the first step. */
export function stepsBefore(episodes: Int32Array): Int32Array {
  const last = new Int32Array(countGroups(episodes)).fill(-1)
  return episodes.map((episode, row) => {
    const before = last[episode]!
    last[episode] = row
    return before
  })
}

/** Row of the next step of the same episode, [steps]; -1 for the last step. */
export function stepsAfter(episodes: Int32Array): Int32Array {
  const after = new Int32Array(episodes.length).fill(-1)
  for (const [row, before] of stepsBefore(episodes).entries()) if (before >= 0) after[before] = row
  return after
}
