import type { Sampler } from "../engine/engine.ts"
import type { OffersTasks } from "../environment/environment.ts"
import { GigpoError } from "../errors.ts"
import { checkArguments } from "../options/arguments.ts"
import { readOptions } from "../options/read.ts"
import { Random } from "../random.ts"
import { checkSampler } from "../rollout/check-setup.ts"
import { type Episode, isScored } from "../rollout/episode.ts"
import { resultOf } from "../rollout/outcome.ts"
import type { Play } from "../rollout/play.ts"
import { rollout } from "../rollout/rollout.ts"
import { drawnTasks } from "../rollout/tasks.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { failuresOf, playerName } from "./failure-reasons.ts"
import { mean } from "./mean.ts"
import { type EvaluateOptions, type EvaluationReport, evaluateFields } from "./options.ts"
import { type AgentSetup, playerOf } from "./player.ts"
import type { Progress } from "./progress.ts"
import { wilsonInterval } from "./wilson.ts"

export interface EvaluateSetup<Task = unknown> extends EvaluateOptions, AgentSetup<Task> {
  readonly policy: Sampler
  readonly tokenizer: ChatCodec
  /** Whose held-out tasks are played, by its own loop unless somebody else plays. */
  readonly environment: OffersTasks<Task>
  /** Plays the episodes in place of the package's own loop. */
  readonly play?: Play<Task> | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

/** Plays held-out tasks, one episode each, and says how many were solved. */
export async function evaluate<Task>(setup: EvaluateSetup<Task>): Promise<EvaluationReport> {
  checkArguments("evaluate", setup)
  const {
    policy,
    tokenizer,
    environment: _,
    play: __,
    agent: ___,
    normalize: ____,
    signal,
    onProgress,
    ...given
  } = setup
  const options = readOptions("evaluate", given, evaluateFields)
  await using player = playerOf(setup)
  const { environment, play } = player
  if (!environment)
    throw new GigpoError("BAD_ARGUMENT", "evaluate needs an environment, whose held-out tasks are played.")
  checkSampler(policy, tokenizer)
  tokenizer.checkVocabulary?.(policy.vocabularySize)
  const random = new Random(options.seed).fork("evaluation")
  using tasks = drawnTasks(environment, "test", random)
  const { groups } = await rollout({
    policy,
    tokenizer,
    environment,
    play,
    tasks,
    groups: options.tasks,
    groupSize: 1,
    random,
    ...options.rollout,
    temperature: options.temperature,
    maxPositions: policy.maxPositions,
    signal,
    onEpisode: (done, total) => onProgress?.({ stage: "evaluation", done, total }),
  })
  const episodes = groups.flatMap((group) => group.episodes)
  return { ...summarize(episodes), ...failuresOf(groups, playerName({ play, environment })) }
}

function summarize(episodes: readonly Episode[]): EvaluationReport {
  const finished = episodes.filter(isScored)
  const solved = countSolved(episodes)
  return {
    episodes: episodes.length,
    failed: episodes.length - finished.length,
    success: solved / episodes.length,
    successInterval: wilsonInterval(solved, episodes.length),
    meanReturn: mean(finished.map((episode) => episode.return)),
    meanSteps: mean(finished.map((episode) => episode.steps.length)),
    metrics: meanMetrics(episodes),
  }
}

/** Episodes whose metric `success` is 1. One that failed or was dropped is lost, whatever it measured. */
function countSolved(episodes: readonly Episode[]): number {
  return episodes.filter((episode) => isScored(episode) && resultOf(episode.metrics.success) === "success").length
}

/**
 * The mean of each metric over the scored episodes that have it, so that an environment may report some for one kind of task alone.
 * Only `success`, where there is one, is the share of all episodes: one that failed, was dropped, or was cut off before its first
 * step solved nothing.
 */
export function meanMetrics(episodes: readonly Episode[]): Record<string, number> {
  const totals = new Map<string, { sum: number; count: number }>()
  for (const [name, value] of episodes.filter(isScored).flatMap(({ metrics }) => Object.entries(metrics))) {
    const { sum, count } = totals.get(name) ?? { sum: 0, count: 0 }
    totals.set(name, { sum: sum + value, count: count + 1 })
  }
  const means = Array.from(totals, ([name, { sum, count }]): [string, number] => [
    name,
    name === "success" ? countSolved(episodes) / episodes.length : sum / count,
  ])
  return Object.fromEntries(means)
}
