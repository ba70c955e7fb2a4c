import { isScored } from "../rollout/episode.ts"
import { mean } from "../training/mean.ts"
import type { TaskEpisodes } from "./by-task.ts"
import { compareSuccess, type SuccessComparison } from "./compare-success.ts"
import { differences, type EvaluationDifference } from "./differences.ts"
import { type BenchmarkEvaluation, checkEvaluation } from "./evaluation-file.ts"
import { type MeanInterval, pairedInterval, tInterval } from "./paired.ts"
import { type Pair, pairsOf } from "./pairs.ts"

/** Comparison of one measure of two evaluations. */
export interface MeasureComparison {
  /** Mean of the first evaluation. */
  readonly first: MeanInterval
  /** Mean of the second evaluation. */
  readonly second: MeanInterval
  /** Paired difference over tasks: first minus second. */
  readonly difference: MeanInterval
}

/** Comparison of two evaluations of one benchmark. */
export interface Comparison {
  /** Name of the benchmark with its version. */
  readonly benchmark: string
  /** Number of tasks. */
  readonly tasks: number
  /** Other differences between the evaluations: prompts, repeats, seed, settings. */
  readonly differing: readonly EvaluationDifference[]
  /** Numbers of failed and excluded episodes, which count as unsuccessful, of the `first` and the `second` evaluation. */
  readonly unscored: { readonly first: number; readonly second: number }
  /** Success rates. Absent where no episode has the metric `success`. */
  readonly success?: SuccessComparison
  /** Undiscounted returns of scored episodes, over the tasks with scored episodes in both evaluations. Absent where there is no such task. */
  readonly return?: MeasureComparison
  /** Numbers of steps of the same episodes. */
  readonly steps?: MeasureComparison
}

/**
 * Compares two evaluations of one benchmark. Tasks are pairs; the repeats of a task are averaged. The 95 % intervals of differences are those of
 * `pairedInterval` over tasks: they estimate the difference of these two models on further tasks, not that of the training methods.
 *
 * @param a - first evaluation, from `readEvaluation` or `evaluateBenchmark`.
 * @param b - second evaluation. Differences are a - b.
 * @throws GigpoError `BAD_ARGUMENT` for an invalid evaluation, and for evaluations of different benchmarks, versions or environments.
 */
export function compareEvaluations(a: BenchmarkEvaluation, b: BenchmarkEvaluation): Comparison {
  checkEvaluation("BAD_ARGUMENT", "compareEvaluations, its first", a)
  checkEvaluation("BAD_ARGUMENT", "compareEvaluations, its second", b)
  const pairs = pairsOf(a, b)
  const haveSuccess = [...a.episodes, ...b.episodes].some(({ metrics }) => metrics.success !== undefined)
  const scored = pairs
    .map(({ first, second }) => ({ first: first.filter(isScored), second: second.filter(isScored) }))
    .filter(({ first, second }) => first.length > 0 && second.length > 0)
  return {
    benchmark: a.header.benchmark,
    tasks: pairs.length,
    differing: differences(a.header, b.header),
    unscored: { first: countUnscored(a), second: countUnscored(b) },
    ...(haveSuccess && { success: compareSuccess(pairs) }),
    ...(scored.length > 0 && { return: compareMeans("return", scored), steps: compareMeans("steps", scored) }),
  }
}

function countUnscored({ episodes }: BenchmarkEvaluation): number {
  return episodes.filter((episode) => !isScored(episode)).length
}

function compareMeans(measure: "return" | "steps", pairs: readonly Pair[]): MeasureComparison {
  const over = (episodes: TaskEpisodes) => mean(episodes.map((episode) => episode[measure]))
  const [first, second] = [pairs.map((pair) => over(pair.first)), pairs.map((pair) => over(pair.second))]
  return { first: tInterval(first), second: tInterval(second), difference: pairedInterval(first, second) }
}
