import { atOnce, type Pieces } from "../pace.ts"
import { type Episode, isScored } from "../rollout/episode.ts"
import { resultOf } from "../rollout/outcome.ts"
import { mean } from "./mean.ts"
import type { EvaluationReport } from "./options.ts"
import { wilsonInterval } from "./wilson.ts"

/** What became of an episode. */
export interface EpisodeOutcome extends Pick<Episode, "outcome" | "return" | "metrics"> {
  readonly steps: number
}

export function outcomeOf({ outcome, return: total, metrics, steps }: Episode): EpisodeOutcome {
  return { outcome, return: total, steps: steps.length, metrics }
}

/** What an evaluation reports of its episodes. */
export function summarize(episodes: readonly EpisodeOutcome[]): EvaluationReport {
  const finished = episodes.filter(isScored)
  const solved = episodes.filter(isSolved).length
  return {
    episodes: episodes.length,
    failed: episodes.length - finished.length,
    success: solved / episodes.length,
    successInterval: wilsonInterval(solved, episodes.length),
    meanReturn: mean(finished.map((episode) => episode.return)),
    meanSteps: mean(finished.map((episode) => episode.steps)),
    metrics: atOnce(meanMetrics(episodes)),
  }
}

/** Whether its metric `success` is 1. An episode that failed or was dropped is lost, whatever it measured. */
export function isSolved(episode: Pick<Episode, "outcome" | "metrics">): boolean {
  return isScored(episode) && resultOf(episode.metrics.success) === "success"
}

/**
 * The mean of each metric over the scored episodes that have it, so that an environment may report some for one kind of task alone.
 * Only `success`, where there is one, is the share of all episodes: one that failed, was dropped, or was cut off before its first
 * step solved nothing.
 */
export function* meanMetrics(
  episodes: readonly Pick<Episode, "outcome" | "metrics">[],
): Pieces<Record<string, number>> {
  const totals = new Map<string, { sum: number; count: number }>()
  let solved = 0
  for (const episode of episodes) {
    yield
    if (!isScored(episode)) continue
    if (isSolved(episode)) solved++
    for (const [name, value] of Object.entries(episode.metrics)) {
      const total = totals.get(name)
      if (!total) totals.set(name, { sum: value, count: 1 })
      else {
        total.sum += value
        total.count++
      }
    }
  }
  const means = Array.from(totals, ([name, { sum, count }]): [string, number] => [
    name,
    name === "success" ? solved / episodes.length : sum / count,
  ])
  return Object.fromEntries(means)
}
