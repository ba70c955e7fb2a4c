import { estimate } from "../credit/as-estimator.ts"
import { toBatch } from "../credit/batch.ts"
import type { Credit } from "../credit/estimator.ts"
import type { Sampler, Trainable } from "../engine/engine.ts"
import type { Sequence } from "../engine/rows.ts"
import { scheduleValue, scheduleValues, type TrainingProgress } from "../options/schedule.ts"
import { isScored } from "../rollout/episode.ts"
import type { Group, RolloutHooks } from "../rollout/hooks.ts"
import { pickHooks } from "../rollout/pick-hooks.ts"
import { type Rollout, type RolloutSetup, rollout } from "../rollout/rollout.ts"
import { environmentTasks } from "../rollout/tasks.ts"
import { isVaried } from "../rollout/varied.ts"
import { playerName } from "../runs/failure-reasons.ts"
import { rememberedEpisodes } from "../runs/remembered.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"
import type { Random } from "../util/random.ts"
import { valueMetrics } from "./critic.ts"
import { wastedShare } from "./episode-shares.ts"
import { expertData } from "./expert-data.ts"
import { fillForced } from "./forced-tokens.ts"
import { checkFailures } from "./guards/failures.ts"
import type { Stopwatch } from "./metrics.ts"
import { weighByImportance } from "./off-policy.ts"
import { iterationRandom, type Training } from "./prepare.ts"
import { seenTexts } from "./privileged.ts"
import { SequenceTable } from "./sequence-table.ts"
import type { SettledTrainOptions } from "./settle-rates.ts"
import { shapeRewards } from "./shaping.ts"
import { compute, foreignRows, inUnits, withKl } from "./statistics.ts"
import { type CollectedStep, collectSteps, learnedEpisodes, withTexts } from "./steps.ts"

/** Data of one iteration: episodes, steps, sequences and advantages. */
export interface Experience {
  readonly groups: readonly Group[]
  /** Groups that were played and not kept. */
  readonly dropped: readonly Group[]
  readonly steps: readonly CollectedStep[]
  /** Sequences with advantages. */
  readonly rows: readonly Sequence[]
  readonly credit: Credit
  readonly metrics: Readonly<Record<string, number>>
}

/** Runs the rollout of one iteration and computes rewards, statistics and advantages. */
export async function collect<Task>(
  training: Training<Task>,
  progress: TrainingProgress,
  clock: Stopwatch,
): Promise<Experience> {
  const { environment, tokenizer, signal, onProgress, onWarning, options, estimator, needs, scale } = training
  const random = iterationRandom(training, progress.iteration)
  using offered = environment && environmentTasks(environment, "train", random.fork("tasks"), onWarning)
  const setup = rolloutSetup(training, progress, random)
  const played = await rollout({
    ...setup,
    tasks: (training.tasks ?? offered)!,
    groups: options.groups,
    groupSize: options.groupSize,
    hooks: training.hooks,
    onlyVaried: options.dynamicSampling,
    onEpisode: (done, total) => onProgress?.({ stage: "rollout", done, total }),
  })
  const pace = new Pace(signal)
  await pace.rest()
  const all = [...played.groups, ...played.dropped]
  if (!training.play) environment?.memory?.learn?.(rememberedEpisodes(all))
  checkFailures(all, playerName(training), options.guards.failureShare, progress.iteration + 1)
  const { groups, dropped } = options.dynamicSampling ? orConstant(played, options.groups) : played
  const { minGroupSize } = options.rollout
  const members = groups.map(({ episodes }) => episodes)
  const collected = collectSteps(members, minGroupSize)
  if (collected.length === 0) throw nothingToLearnFrom(groups, dropped.length, minGroupSize, setup)
  const baselines = needs.has("greedy")
    ? await playGreedily(setup, groups, training.hooks, random.fork("greedy"))
    : undefined
  clock.lap("rollout")

  const shaped = shapeRewards(collected, options, progress, baselines)
  const steps = needs.has("text") ? withTexts(shaped, tokenizer) : shaped
  await pace.rest()
  const table = await SequenceTable.paced(steps, pace)
  await pace.rest()
  await fillForced(training, table, progress)
  const seen = training.sight && (await seenTexts(training.sight, groups, steps))
  const [statistics, metrics] = await compute(training, table, progress, seen)
  await pace.rest()
  const [batch, withheld] = withKl(training, toBatch(steps, statistics), progress)
  await pace.rest()
  const credit = await estimate(estimator, batch, { progress, random: random.fork("credit"), signal })
  await pace.rest()
  const inOwnUnits = scale ? inUnits(credit, scale, estimator.name) : credit
  const credited = table.withCredit(inOwnUnits)
  if (options.importance) weighByImportance(credited, scheduleValues(options.importance, progress), options.unit)
  const shown = await expertData(training, progress, random.fork("expert"))
  const extra = [...foreignRows(credit.extraRows ?? [], training), ...shown]
  clock.lap("advantage")
  await pace.rest()
  const critic = scale ? valueMetrics(credited, inOwnUnits.returns!, scale) : {}
  const wasted = wastedShare(learnedEpisodes(members, minGroupSize), batch.anchorGroups)
  const found = { ...metrics, ...withheld, ...critic, ...(wasted !== undefined && { "episode/wasted": wasted }) }
  const trainer = table.columns.oldLogProbs && table.byStep(table.columns.oldLogProbs)
  const scored = trainer ? steps.map((step, at) => ({ ...step, trainerLogProbs: trainer[at]! })) : steps
  return { groups, dropped, steps: scored, rows: [...credited.toSequences(), ...extra], credit, metrics: found }
}

/** Returns the arguments of a training's rollouts. */
export function rolloutSetup<Task>(
  training: Pick<RolloutSetup<Task>, "tokenizer" | "environment" | "play" | "signal"> & {
    readonly policy: Sampler & Pick<Trainable, "longestRow">
    readonly options: Pick<SettledTrainOptions, "rollout">
  },
  progress: TrainingProgress,
  random: Random,
) {
  const { policy, tokenizer, environment, play, signal, options } = training
  return {
    policy,
    tokenizer,
    environment,
    play,
    random: random.fork("rollout"),
    ...options.rollout,
    temperature: scheduleValue(options.rollout.temperature, progress),
    maxPositions: Math.min(policy.maxPositions, policy.longestRow || policy.maxPositions), // longestRow is 0 for an engine that only samples
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
  const same = pickHooks(hooks, "begin", "sample", "onTurn", "score")
  const alone = { groupSize: 1, maxForks: 0, temperature: 0 }
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
      `No group has ${minGroupSize} episodes that can be learned from (rollout.minGroupSize): lower rollout.minGroupSize, or raise rollout.maxRetries.`,
    )
  const cause = episodes.find((episode) => episode.error)?.error
  if (cause) {
    const message = `No episode of the iteration can be learned from. The first error: ${cause.message}`
    return new GigpoError(cause.code, message, { cause })
  }
  const left = episodes.filter(({ outcome }) => outcome === "dropped").length
  return new GigpoError(
    "BAD_ENVIRONMENT",
    left > 0
      ? `No episode of the iteration can be learned from: the agent dropped ${left} of ${episodes.length} (play returned null).`
      : `No episode has a step: the first prompt leaves no room for a completion in the model's ${maxPositions} positions (maxPositions). ` +
          `Raise maxPositions or shorten the prompt; with an environment, you can also lower rollout.maxCompletionTokens (${maxCompletionTokens}).`,
  )
}
