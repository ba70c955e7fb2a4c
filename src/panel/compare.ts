import { isScored } from "../rollout/episode.ts"
import { mean } from "../training/mean.ts"
import type { TaskEpisodes } from "./by-task.ts"
import { type ComparedSuccess, compareSuccess } from "./compare-success.ts"
import { type Difference, differences } from "./differences.ts"
import { checkEvaluation, type PanelEvaluation } from "./evaluation-file.ts"
import { type MeanInterval, pairedInterval, tInterval } from "./paired.ts"
import { type Pair, pairsOf } from "./pairs.ts"

/** One measure of two evaluations. */
export interface Compared {
  readonly first: MeanInterval
  readonly second: MeanInterval
  /** First minus second, tasks as pairs. */
  readonly difference: MeanInterval
}

/** Two evaluations of one panel beside each other. */
export interface Comparison {
  readonly panel: string
  readonly tasks: number
  /** What else differs between the two: prompts, repeats, seed, settings. */
  readonly differing: readonly Difference[]
  /** Episodes that failed or were dropped; they count as lost. */
  readonly failed: { readonly first: number; readonly second: number }
  /** Absent where no episode tells of success. */
  readonly success?: ComparedSuccess
  /** Undiscounted; of scored episodes, over the tasks that have some in both evaluations. Absent where there is no such task. */
  readonly return?: Compared
  /** Of the same episodes. */
  readonly steps?: Compared
}

/**
 * Compares two evaluations of one panel, task by task: the repeats of a task are one mean, and tasks are the pairs. The 95 % intervals
 * of differences are `pairedInterval`'s over tasks: they speak of more such tasks for these very weights, not of what another training
 * run would give.
 *
 * @param a the first, as `readEvaluation` gives it
 * @param b the second; differences are a - b
 * @throws GigpoError `BAD_ARGUMENT` where one is no evaluation, or they are of different panels, versions or worlds
 */
export function compareEvaluations(a: PanelEvaluation, b: PanelEvaluation): Comparison {
  checkEvaluation("BAD_ARGUMENT", "compareEvaluations, its first", a)
  checkEvaluation("BAD_ARGUMENT", "compareEvaluations, its second", b)
  const pairs = pairsOf(a, b)
  const told = [...a.episodes, ...b.episodes].some(({ metrics }) => metrics.success !== undefined)
  const scored = pairs
    .map(({ first, second }) => ({ first: first.filter(isScored), second: second.filter(isScored) }))
    .filter(({ first, second }) => first.length > 0 && second.length > 0)
  return {
    panel: a.header.panel,
    tasks: pairs.length,
    differing: differences(a.header, b.header),
    failed: { first: countFailed(a), second: countFailed(b) },
    ...(told && { success: compareSuccess(pairs) }),
    ...(scored.length > 0 && { return: compareMeans("return", scored), steps: compareMeans("steps", scored) }),
  }
}

function countFailed({ episodes }: PanelEvaluation): number {
  return episodes.filter((episode) => !isScored(episode)).length
}

function compareMeans(measure: "return" | "steps", pairs: readonly Pair[]): Compared {
  const over = (episodes: TaskEpisodes) => mean(episodes.map((episode) => episode[measure]))
  const [first, second] = [pairs.map((pair) => over(pair.first)), pairs.map((pair) => over(pair.second))]
  return { first: tInterval(first), second: tInterval(second), difference: pairedInterval(first, second) }
}
