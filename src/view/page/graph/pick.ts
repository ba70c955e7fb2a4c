import { results } from "../../../rollout/outcome.ts"
import type { EpisodeTable } from "../../data/episode-table.ts"
import type { RecordedGroup } from "../../data/recorded.ts"
import type { Source } from "../../data/source.ts"
import { tellingOf } from "../../data/telling.ts"

/** Group with recorded episodes. */
export interface Place {
  readonly iteration: number
  readonly group: number
  /** Index in the `tasks` of the episode page. */
  readonly task: number
  readonly episodes: number
  /** Number of successful episodes; undefined if the environment does not report success. */
  readonly successes: number | undefined
  /** Whether the returns of the group differ, so that there are advantages. */
  readonly isVaried: boolean
}

/** All groups with recorded episodes, sorted by iteration and group. */
export function placesOf(table: EpisodeTable): Place[] {
  const places: Place[] = []
  const { length, iteration, group, task, result } = table
  for (let from = 0, to = 0; from < length; from = to) {
    while (to < length && iteration[to] === iteration[from] && group[to] === group[from]) to++
    const picked = [...result.subarray(from, to)].map((place) => results[place]!)
    places.push({
      iteration: iteration[from]!,
      group: group[from]!,
      task: task[from]!,
      episodes: to - from,
      successes: picked.every((one) => one === "untold") ? undefined : picked.filter((one) => one === "success").length,
      isVaried: table.return.subarray(from, to).some((one) => one !== table.return[from]),
    })
  }
  return places
}

/** Maximum number of groups among which the most informative one is searched. */
const mostLookedAt = 8

/** Most informative group of the newest iteration, by the score that reports use. Undefined if none is available. */
export async function mostTelling(
  source: Source,
  run: string,
  places: readonly Place[],
  signal: AbortSignal,
): Promise<RecordedGroup | undefined> {
  const newestFirst = places.toSorted(
    (a, b) => b.iteration - a.iteration || Number(b.isVaried) - Number(a.isVaried) || a.group - b.group,
  )
  let best: { readonly group: RecordedGroup; readonly score: number } | undefined
  let looked = 0
  for (const { iteration, group: number } of newestFirst) {
    if (best && (looked >= mostLookedAt || best.group.iteration !== iteration)) break
    const group = await source.group(run, iteration, number, [], signal)
    if (!group) continue // a report contains only some groups
    looked++
    const score = tellingOf(group)
    if (!best || score > best.score) best = { group, score }
  }
  return best?.group
}
