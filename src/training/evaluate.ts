import { checkWhole } from "../engine/check-arguments.ts"
import type { NativePolicy } from "../engine/native/native-policy.ts"
import type { Environment } from "../environment/environment.ts"
import { GigpoError } from "../errors.ts"
import { Random } from "../random.ts"
import type { Episode } from "../rollout/episode.ts"
import { rollout } from "../rollout/rollout.ts"
import type { Tokenizer } from "../tokenizer/tokenizer.ts"
import { evaluationDefaults, rolloutDefaults } from "./defaults.ts"
import type { EvaluationOptions, EvaluationReport, RolloutOptions } from "./options.ts"
import type { Progress } from "./progress.ts"

export interface EvaluateSetup {
  readonly policy: NativePolicy
  readonly tokenizer: Tokenizer
  readonly environment: Environment
  readonly options?: EvaluationOptions
  readonly rollout?: RolloutOptions
  /** Default 0. The same seed gives the same replies; the tasks are the environment's test split. */
  readonly seed?: number
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: Progress) => void
}

/** Plays held-out tasks, one episode each, and says how many were solved. */
export async function evaluate(setup: EvaluateSetup): Promise<EvaluationReport> {
  const { policy, tokenizer, environment, onProgress, signal } = setup
  const options = { ...evaluationDefaults, ...setup.options }
  tokenizer.checkVocabulary(policy.config.vocabularySize)
  const random = new Random(setup.seed ?? 0).fork("evaluation")
  const tasks = takeTasks(environment, "test", random, options.tasks)
  const groups = await rollout({
    policy,
    tokenizer,
    environment,
    tasks,
    groupSize: 1,
    random,
    ...rolloutDefaults,
    ...setup.rollout,
    temperature: options.temperature,
    maxPositions: policy.maxPositions,
    ...(signal && { signal }),
    onEpisode: (done, total) => onProgress?.({ stage: "evaluation", done, total }),
  })
  return summarize(groups.flat())
}

/** The first `count` tasks of a split; fewer where the environment has no more. */
export function takeTasks<Task>(
  environment: Environment<Task>,
  split: "train" | "test",
  random: Random,
  count: number,
): Task[] {
  checkWhole(count, "the number of tasks")
  const tasks: Task[] = []
  for (const task of environment.tasks(split, random)) {
    tasks.push(task)
    if (tasks.length === count) break
  }
  if (tasks.length === 0) throw new GigpoError("BAD_ENVIRONMENT", `${environment.name} offers no ${split} tasks.`)
  return tasks
}

function summarize(episodes: readonly Episode[]): EvaluationReport {
  const finished = episodes.filter((episode) => episode.outcome !== "failed")
  const solved = finished.filter((episode) => episode.metrics.success === 1).length
  // A failed episode is no success: it counts in the share, not in the means.
  return {
    episodes: episodes.length,
    failed: episodes.length - finished.length,
    success: solved / episodes.length,
    successInterval: wilsonInterval(solved, episodes.length),
    meanReturn: mean(finished.map((episode) => episode.return)),
    meanSteps: mean(finished.map((episode) => episode.steps.length)),
    metrics: meanMetrics(finished),
  }
}

/**
 * The mean of each metric over the episodes that have it, so that an environment may report some for one kind of task alone.
 * Only `success` is taken to be 0 where it is missing: an episode that was cut off before its first step solved nothing.
 */
export function meanMetrics(episodes: readonly Episode[]): Record<string, number> {
  const totals = new Map<string, { sum: number; count: number }>()
  for (const [name, value] of episodes.flatMap(({ metrics }) => Object.entries(metrics))) {
    const { sum, count } = totals.get(name) ?? { sum: 0, count: 0 }
    totals.set(name, { sum: sum + value, count: count + 1 })
  }
  const means = Array.from(totals, ([name, { sum, count }]): [string, number] => [
    name,
    sum / (name === "success" ? episodes.length : count),
  ])
  return Object.fromEntries(means)
}

/** 95 % interval of a share (Wilson, JASA 1927): sensible also near 0 and 1. */
export function wilsonInterval(successes: number, count: number): [number, number] {
  if (count === 0) return [0, 1]
  const z = 1.959964
  const share = successes / count
  const center = (share + (z * z) / (2 * count)) / (1 + (z * z) / count)
  const half = (z * Math.sqrt((share * (1 - share)) / count + (z * z) / (4 * count * count))) / (1 + (z * z) / count)
  // At 0 and at 1 the share is the bound itself, but for rounding.
  return [Math.max(Math.min(center - half, share), 0), Math.min(Math.max(center + half, share), 1)]
}

export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}
