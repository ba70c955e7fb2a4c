import type { EvaluatedEpisode } from "./evaluation-file.ts"

/** Repeats of one task. */
export type TaskEpisodes = readonly EvaluatedEpisode[]

/** Episodes by task. The repeats of a task are adjacent. */
export function byTask(episodes: readonly EvaluatedEpisode[], repeats: number): TaskEpisodes[] {
  return Array.from({ length: episodes.length / repeats }, (_, task) =>
    episodes.slice(task * repeats, (task + 1) * repeats),
  )
}

export function countSolved(episodes: TaskEpisodes): number {
  return episodes.filter(({ success }) => success).length
}
