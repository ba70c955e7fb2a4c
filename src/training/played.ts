import type { Sampler, Trainable } from "../engine/engine.ts"
import { scheduleValue, type TrainingProgress } from "../options/schedule.ts"
import { isScored } from "../rollout/episode.ts"
import type { Group, RolloutHooks } from "../rollout/hooks.ts"
import { pickHooks } from "../rollout/pick-hooks.ts"
import { type Rollout, type RolloutSetup, rollout } from "../rollout/rollout.ts"
import { environmentTasks } from "../rollout/tasks.ts"
import { isVaried } from "../rollout/varied.ts"
import { playerName } from "../runs/failure-reasons.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"
import type { Random } from "../util/random.ts"
import { checkFailures } from "./guards/failures.ts"
import { longestSequence } from "./longest-sequence.ts"
import { iterationRandom, type Training } from "./prepare.ts"
import type { SettledTrainOptions } from "./settle-rates.ts"
import { type CollectedStep, collectInPieces } from "./steps.ts"

/** Rollout of one iteration, before the model is trained on it. */
export interface Played<Task = unknown> extends Rollout<Task> {
  /** Steps that can be trained on. */
  readonly collected: readonly CollectedStep[]
  /** Return of a greedily decoded episode per task, [groups]; undefined if the estimator needs none. */
  readonly baselines: readonly number[] | undefined
  /** Duration in seconds. */
  readonly seconds: number
}

/**
 * Plays the rollout of one iteration.
 *
 * @param sampler - engine that samples. Default: the policy.
 */
export async function play<Task>(
  training: Training<Task>,
  progress: TrainingProgress,
  sampler?: Sampler,
): Promise<Played<Task>> {
  const { environment, signal, onProgress, onWarning, options, needs } = training
  const started = performance.now()
  const random = iterationRandom(training, progress.iteration)
  using offered = environment && environmentTasks(environment, "train", random.derive("tasks"), onWarning)
  const setup = { ...rolloutSetup(training, progress, random), ...(sampler && { policy: sampler }) }
  const played = await rollout({
    ...setup,
    tasks: (training.tasks ?? offered)!,
    groups: options.groups,
    groupSize: options.groupSize,
    hooks: training.hooks,
    dynamicSampling: options.dynamicSampling,
    onEpisode: (done, total) => onProgress?.({ stage: "rollout", done, total }),
  })
  const pace = new Pace(signal)
  await pace.rest()
  const all = [...played.groups, ...played.dropped]
  checkFailures(all, playerName(training), options.guards.maxFailed, progress.iteration + 1)
  const { groups, dropped } = options.dynamicSampling ? orConstant(played, options.groups) : played
  const { minGroupSize } = options.rollout
  const members = groups.map(({ episodes }) => episodes)
  const collected = await pace.through(collectInPieces(members, minGroupSize))
  if (collected.length === 0) throw nothingToLearnFrom(groups, dropped.length, minGroupSize, setup)
  const baselines = needs.has("greedy")
    ? await playGreedily(setup, groups, training.hooks, random.derive("greedy"))
    : undefined
  return { groups, dropped, collected, baselines, seconds: (performance.now() - started) / 1000 }
}

/** Returns the arguments of a training's rollouts. */
export function rolloutSetup<Task>(
  training: Pick<RolloutSetup<Task>, "tokenizer" | "environment" | "agentLoop" | "signal"> & {
    readonly policy: Sampler & Pick<Trainable, "maxTrainTokens">
    readonly options: Pick<SettledTrainOptions, "rollout">
  },
  progress: TrainingProgress,
  random: Random,
) {
  const { policy, tokenizer, environment, agentLoop, signal, options } = training
  return {
    policy,
    tokenizer,
    environment,
    agentLoop,
    random: random.derive("rollout"),
    ...options.rollout,
    temperature: scheduleValue(options.rollout.temperature, progress),
    maxPositions: longestSequence(policy),
    progress,
    signal,
  }
}

/**
 * Keeps groups with equal returns where dynamic sampling has left no group: a run must not fail because all tasks are solved. Groups that a
 * hook dropped stay dropped.
 */
function orConstant<Task>({ groups, dropped }: Rollout<Task>, wanted: number): Rollout<Task> {
  if (groups.length > 0) return { groups, dropped }
  const constant = dropped.filter((group) => !isVaried(group) && group.episodes.some(isScored)).slice(-wanted)
  return { groups: constant, dropped: dropped.filter((group) => !constant.includes(group)) }
}

/** Returns of one greedily decoded episode per task, [groups]; NaN if the episode failed. */
async function playGreedily<Task>(
  setup: Omit<RolloutSetup<Task>, "tasks" | "groupSize">,
  groups: readonly Group<Task>[],
  hooks: RolloutHooks<Task> | undefined,
  random: Random,
): Promise<number[]> {
  const tasks = groups.map(({ task }) => task)
  // The same start, sampling and scoring hooks as in the rollout. No candidates and branches: with greedy decoding all would be equal.
  const same = pickHooks(hooks, "start", "sample", "onTurn", "score")
  const alone = { groupSize: 1, maxBranches: 0, temperature: 0 }
  const { groups: greedy } = await rollout({ ...setup, ...alone, tasks, random, hooks: same })
  return greedy.map(({ episodes: [episode] }) => (isScored(episode!) ? episode!.return : Number.NaN))
}

function nothingToLearnFrom(
  groups: readonly Group[],
  dropped: number,
  minGroupSize: number,
  { maxCompletionTokens, maxPositions }: { readonly maxCompletionTokens: number; readonly maxPositions: number },
): GigpoError {
  const episodes = groups.flatMap((group) => group.episodes)
  if (episodes.length === 0)
    return new GigpoError(
      "BAD_ARGUMENT",
      dropped > 0
        ? `hooks.keep dropped all ${dropped} groups: keep some of them, or raise rollout.maxRefillRounds.`
        : "The source of tasks has no task for this iteration: provide more tasks, or lower iterations.",
    )
  if (episodes.some((episode) => isScored(episode) && episode.steps.length > 0))
    return new GigpoError(
      "BAD_ENVIRONMENT",
      `No group has ${minGroupSize} episodes that can be trained on (rollout.minGroupSize): lower rollout.minGroupSize, or raise rollout.maxRetries.`,
    )
  const cause = episodes.find((episode) => episode.error)?.error
  if (cause) {
    const message = `No episode of the iteration can be trained on. The first error: ${cause.message}`
    return new GigpoError(cause.code, message, { cause })
  }
  const left = episodes.filter(({ outcome }) => outcome === "excluded").length
  return new GigpoError(
    "BAD_ENVIRONMENT",
    left > 0
      ? `No episode of the iteration can be trained on: the agent excluded ${left} of ${episodes.length} (agentLoop returned null).`
      : `No episode has a step: the first prompt leaves no room for a completion in the model's ${maxPositions} positions (maxPositions). ` +
          `Raise maxPositions or shorten the prompt; with an environment, you can also lower rollout.maxCompletionTokens (${maxCompletionTokens}).`,
  )
}
