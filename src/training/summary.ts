import { type Episode, isScored } from "../rollout/episode.ts"
import { resultOf } from "../rollout/outcome.ts"
import type { EvaluationReport } from "../runs/report.ts"
import { atOnce, itemsOfPiece, type Pieces } from "../util/pace.ts"
import { mean } from "./mean.ts"
import { wilsonInterval } from "./wilson.ts"

/** Outcome of an episode. */
export interface EpisodeOutcome extends Pick<Episode, "outcome" | "return" | "metrics"> {
  /** Number of steps. */
  readonly steps: number
  /** Number of completions with a valid action. Absent if not recorded. */
  readonly valid?: number | undefined
  /** Number of truncated completions. Absent if not recorded. */
  readonly truncated?: number | undefined
}

export function outcomeOf({ outcome, return: total, metrics, steps }: Episode): Required<EpisodeOutcome> {
  const valid = steps.filter((step) => step.valid).length
  const truncated = steps.filter(({ finishReason }) => finishReason === "length").length
  return { outcome, return: total, steps: steps.length, metrics, valid, truncated }
}

/** Returns the report of an evaluation with these episodes. */
export function summarize(episodes: readonly EpisodeOutcome[]): EvaluationReport {
  const finished = episodes.filter(isScored)
  const solved = episodes.filter(isSolved).length
  const share = (end: Episode["outcome"]) => mean(episodes.map(({ outcome }) => Number(outcome === end)))
  const excluded = share("excluded")
  return {
    episodes: episodes.length,
    failed: share("failed"),
    ...(excluded > 0 && { excluded }),
    success: solved / episodes.length,
    successInterval: wilsonInterval(solved, episodes.length),
    meanReturn: mean(finished.map((episode) => episode.return)),
    meanSteps: mean(finished.map((episode) => episode.steps)),
    metrics: meanMetrics(episodes),
    ...completionShares(finished),
  }
}

/** Shares of valid and truncated completions. Empty if no completion was recorded. */
function completionShares(
  episodes: readonly EpisodeOutcome[],
): Pick<EvaluationReport, "valid" | "completionsTruncated"> {
  const withCompletions = episodes.filter(({ valid, truncated }) => valid !== undefined && truncated !== undefined)
  const sum = (key: "steps" | "valid" | "truncated") =>
    withCompletions.reduce((total, episode) => total + episode[key]!, 0)
  const completions = sum("steps")
  return completions === 0
    ? {}
    : { valid: sum("valid") / completions, completionsTruncated: sum("truncated") / completions }
}

/** Whether the metric `success` of an episode is 1. Failed and excluded episodes count as unsuccessful. */
export function isSolved(episode: Pick<Episode, "outcome" | "metrics">): boolean {
  return isScored(episode) && resultOf(episode.metrics.success) === "success"
}

/**
 * Returns the mean of each metric over the scored episodes that have the metric, so that an environment may report metrics for some tasks
 * only. `success` is the share of all episodes: failed, excluded and empty episodes count as unsuccessful.
 */
export function meanMetrics(episodes: readonly Pick<Episode, "outcome" | "metrics">[]): Record<string, number> {
  return atOnce(meanMetricsInPieces(episodes))
}

/** `meanMetrics` for many episodes, which pauses between episodes. */
export function* meanMetricsInPieces(
  episodes: readonly Pick<Episode, "outcome" | "metrics">[],
): Pieces<Record<string, number>> {
  const totals = new Map<string, { sum: number; count: number }>()
  let solved = 0
  for (const [index, episode] of episodes.entries()) {
    if (index % itemsOfPiece === itemsOfPiece - 1) yield
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
