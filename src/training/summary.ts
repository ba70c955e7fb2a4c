import { type Episode, isScored } from "../rollout/episode.ts"
import { resultOf } from "../rollout/outcome.ts"
import type { EvaluationReport } from "../runs/report.ts"
import { mean } from "./mean.ts"
import { wilsonInterval } from "./wilson.ts"

/** What became of an episode. */
export interface EpisodeOutcome extends Pick<Episode, "outcome" | "return" | "metrics"> {
  readonly steps: number
  /** Replies that the environment could read, and that were cut at their limit; absent where that was not recorded. */
  readonly valid?: number | undefined
  readonly cut?: number | undefined
}

export function outcomeOf({ outcome, return: total, metrics, steps }: Episode): Required<EpisodeOutcome> {
  const valid = steps.filter((step) => step.valid).length
  const cut = steps.filter(({ finishReason }) => finishReason === "length").length
  return { outcome, return: total, steps: steps.length, metrics, valid, cut }
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
    metrics: meanMetrics(episodes),
    ...replyShares(finished),
  }
}

/** Empty where there was no reply, or nothing was recorded of one. */
function replyShares(episodes: readonly EpisodeOutcome[]): Pick<EvaluationReport, "valid" | "cut"> {
  const told = episodes.filter(({ valid, cut }) => valid !== undefined && cut !== undefined)
  const sum = (key: "steps" | "valid" | "cut") => told.reduce((total, episode) => total + episode[key]!, 0)
  const replies = sum("steps")
  return replies === 0 ? {} : { valid: sum("valid") / replies, cut: sum("cut") / replies }
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
export function meanMetrics(episodes: readonly Pick<Episode, "outcome" | "metrics">[]): Record<string, number> {
  const totals = new Map<string, { sum: number; count: number }>()
  let solved = 0
  for (const episode of episodes) {
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
