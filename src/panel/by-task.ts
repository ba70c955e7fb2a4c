import type { EvaluatedEpisode } from "./evaluation-file.ts"

/** A task's repeats. */
export type TaskEpisodes = readonly EvaluatedEpisode[]

/** The episodes of each task, whose repeats follow each other. */
export function byTask(episodes: readonly EvaluatedEpisode[], repeats: number): TaskEpisodes[] {
  return Array.from({ length: episodes.length / repeats }, (_, task) =>
    episodes.slice(task * repeats, (task + 1) * repeats),
  )
}

export function countSolved(episodes: TaskEpisodes): number {
  return episodes.filter(({ success }) => success).length
}
