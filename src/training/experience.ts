import { estimate } from "../credit/as-estimator.ts"
import { batchOf } from "../credit/batch.ts"
import type { Batch, Credit } from "../credit/estimator.ts"
import { klRewards } from "../credit/kl-reward.ts"
import type { RowStatistics } from "../engine/engine.ts"
import type { Row } from "../engine/rows.ts"
import { GigpoError } from "../errors.ts"
import { klEstimators } from "../loss/kl-estimators.ts"
import { at, atMoment, type Moment } from "../options/schedule.ts"
import type { Random } from "../random.ts"
import { isScored } from "../rollout/episode.ts"
import type { Group, RolloutHooks } from "../rollout/hooks.ts"
import { type Rollout, type RolloutSetup, rollout } from "../rollout/rollout.ts"
import { environmentTasks } from "../rollout/tasks.ts"
import { isVaried } from "../rollout/varied.ts"
import { foretell, valueMetrics } from "./critic.ts"
import { checkFailures } from "./guards/failures.ts"
import type { Stopwatch } from "./metrics.ts"
import { recomputedMismatch, weighByImportance } from "./off-policy.ts"
import { iterationRandom, type Learning, type Training } from "./prepare.ts"
import type { ReturnScale } from "./return-scale.ts"
import { addColumn, byStep, type CollectedStep, collectSteps, giveCredit, type LaidRow, layRows } from "./rows.ts"
import { shapeRewards } from "./shaping.ts"

/** What one rollout gave to learn from. */
export interface Experience {
  readonly groups: readonly Group[]
  /** Groups that were played and dropped. */
  readonly dropped: readonly Group[]
  readonly steps: readonly CollectedStep[]
  /** With their credit. */
  readonly rows: readonly Row[]
  readonly credit: Credit
  readonly metrics: Readonly<Record<string, number>>
}

/** Rollout, score and keep, rows, statistics, rewards, credit. */
export async function collect<Task>(training: Training<Task>, moment: Moment, clock: Stopwatch): Promise<Experience> {
  const { environment, signal, onProgress, onWarning, options, estimator, needs, scale } = training
  const random = iterationRandom(training, moment.iteration)
  using offered = environment && environmentTasks(environment, "train", random.fork("tasks"), onWarning)
  const setup = rolloutSetup(training, moment, random)
  const played = await rollout({
    ...setup,
    tasks: (training.tasks ?? offered)!,
    groups: options.groups,
    groupSize: options.groupSize,
    hooks: training.hooks,
    onlyVaried: options.dynamicSampling,
    onEpisode: (done, total) => onProgress?.({ stage: "rollout", done, total }),
  })
  const name = training.play ? "play" : environment!.name
  checkFailures([...played.groups, ...played.dropped], name, options.guards.failureShare, moment.iteration + 1)
  const { groups, dropped } = options.dynamicSampling ? orConstant(played, options.groups) : played
  const { leastGroupSize } = options.rollout
  const collected = collectSteps(
    groups.map(({ episodes }) => episodes),
    leastGroupSize,
  )
  if (collected.length === 0) throw nothingToLearnFrom(groups, dropped.length, leastGroupSize)
  const baselines = needs.has("greedy")
    ? await playGreedily(setup, groups, training.hooks, random.fork("greedy"))
    : undefined
  clock.lap("rollout")

  const steps = shapeRewards(collected, options, moment, baselines)
  const rows = layRows(steps)
  const [statistics, metrics] = await compute(training, rows, steps, moment)
  const [batch, withheld] = withKl(training, batchOf(steps, statistics), moment)
  const credit = await estimate(estimator, batch, { moment, random: random.fork("credit"), signal })
  const credited = giveCredit(rows, scale ? inUnits(credit, scale, estimator.name) : credit)
  if (options.importance) weighByImportance(credited, atMoment(options.importance, moment), options.unit)
  const extra = foreignRows(credit.extraRows ?? [], needs, estimator.name)
  clock.lap("advantage")
  const critic = scale ? valueMetrics(credited, scale) : {}
  const found = { ...metrics, ...withheld, ...critic }
  return { groups, dropped, steps, rows: [...credited, ...extra], credit, metrics: found }
}

/** The same credit with returns as the critic has them. What a skipped step holds is not looked at. */
function inUnits(credit: Credit, scale: ReturnScale, name: string): Credit {
  const { returns, skip } = credit
  if (!returns)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The estimator ${name} needs values, but gives no returns: a critic could not learn.`,
    )
  return { ...credit, returns: returns.map((tokens, step) => (skip?.[step] === 1 ? tokens : scale.toCritic(tokens))) }
}

/** Rows of other iterations, or of others, which know nothing of this one's tasks and episodes, nor its critic of theirs. */
function foreignRows(rows: readonly Row[], needs: ReadonlySet<string>, name: string): Row[] {
  return rows.map((row, index) => {
    if (needs.has("reference") && row.spans.some((span) => !span.referenceLogProbs))
      throw new GigpoError(
        "BAD_ARGUMENT",
        `The estimator ${name} gave extraRows[${index}] without referenceLogProbs, which the KL needs; give them, or set loss.klWeight to 0.`,
      )
    const spans = row.spans.map(({ task: _, episode: __, values: ___, returns: ____, ...span }) => span)
    return { ...row, spans }
  })
}

function rolloutSetup<Task>(training: Training<Task>, moment: Moment, random: Random) {
  const { policy, tokenizer, environment, play, signal, options } = training
  return {
    policy,
    tokenizer,
    environment,
    play,
    random: random.fork("rollout"),
    ...options.rollout,
    temperature: at(options.rollout.temperature, moment),
    maxPositions: Math.min(policy.maxPositions, policy.longestRow ?? policy.maxPositions),
    moment,
    signal,
  }
}

/**
 * Where no group was kept, those that only taught nothing are learned from all the same: a run must not end of success. What somebody's
 * hook refused stays refused.
 */
function orConstant<Task>({ groups, dropped }: Rollout<Task>, wanted: number): Rollout<Task> {
  if (groups.length > 0) return { groups, dropped }
  const constant = dropped.filter((group) => !isVaried(group) && group.episodes.some(isScored)).slice(-wanted)
  return { groups: constant, dropped: dropped.filter((group) => !constant.includes(group)) }
}

/** Returns of one episode of each group's task in which the most likely token is taken always, [groups]; NaN where it failed. */
async function playGreedily<Task>(
  setup: Omit<RolloutSetup<Task>, "tasks" | "groupSize">,
  groups: readonly Group<Task>[],
  hooks: RolloutHooks<Task> | undefined,
  random: Random,
): Promise<number[]> {
  const tasks = groups.map(({ task }) => task)
  // Played and judged as the others were, but none is left out.
  const same = hooks && {
    ...(hooks.begin && { begin: hooks.begin.bind(hooks) }),
    ...(hooks.onTurn && { onTurn: hooks.onTurn.bind(hooks) }),
    ...(hooks.score && { score: hooks.score.bind(hooks) }),
  }
  const { groups: greedy } = await rollout({ ...setup, tasks, groupSize: 1, random, hooks: same, temperature: 0 })
  return greedy.map(({ episodes: [episode] }) => (isScored(episode!) ? episode!.return : Number.NaN))
}

/** What the estimator, and of the loss what does not change in the update, asked for; the loss finds it in the rows. */
async function compute(
  { policy, critic, scale, signal, options, estimator, kl, needs }: Learning,
  rows: readonly LaidRow[],
  steps: readonly CollectedStep[],
  moment: Moment,
): Promise<[Batch["statistics"], Record<string, number>]> {
  const temperature = at(options.rollout.temperature, moment)
  const statistics: { -readonly [name in keyof NonNullable<Batch["statistics"]>]: readonly Float32Array[] } = {}
  const spread = (found: readonly RowStatistics[], name: keyof RowStatistics) =>
    byStep(rows, steps.length, (row) => found[row]![name])
  let metrics: Record<string, number> = {}
  const entropy = estimator.needs?.includes("entropy") // the loss's is of the weights at its own batch
  if (needs.has("old") || entropy) {
    const current = await policy.logProbs(rows, { needs: entropy ? ["entropy"] : [], temperature, signal })
    if (needs.has("old")) {
      addColumn(rows, "oldLogProbs", (row) => current[row]!.logProbs)
      statistics.old = spread(current, "logProbs")
      metrics = recomputedMismatch(rows)
    }
    if (entropy) statistics.entropy = spread(current, "entropies")
  }
  // Where the trainer's are not asked for, the sampler's are as good for a KL in the reward.
  if (kl.place === "reward") statistics.old ??= steps.map(({ record }) => record.logProbs)
  if (needs.has("reference")) {
    const reference = await policy.logProbs(rows, { of: "reference", temperature, signal })
    addColumn(rows, "referenceLogProbs", (row) => reference[row]!.logProbs)
    statistics.reference = spread(reference, "logProbs")
  }
  if (critic && scale) {
    scale.fit(steps)
    const values = await foretell(critic, rows, signal)
    addColumn(rows, "values", (row) => values[row]!)
    const inRewards = values.map((tokens) => scale.toRewards(tokens))
    statistics.value = byStep(rows, steps.length, (row) => inRewards[row])
  }
  return [statistics, metrics]
}

/** Where the KL stands in the reward: the batch with what it takes off, and how far the policy is, in nats a token. */
function withKl({ kl }: Learning, batch: Batch, moment: Moment): [Batch, Record<string, number>] {
  const weight = kl.place === "loss" ? 0 : at(kl.weight, moment)
  if (weight === 0) return [batch, {}]
  const found = klRewards(batch, weight, klEstimators[kl.estimator].value)
  const taken = sum(batch.rewards) - sum(found.rewards)
  return [found, { "reward/kl": taken / weight / sum(batch.lengths) }]
}

function sum(values: Float64Array | Int32Array): number {
  let total = 0
  for (const value of values) total += value
  return total
}

function nothingToLearnFrom(groups: readonly Group[], dropped: number, leastGroupSize: number): GigpoError {
  const episodes = groups.flatMap((group) => group.episodes)
  if (episodes.length === 0)
    return new GigpoError(
      "BAD_ARGUMENT",
      dropped > 0
        ? `hooks.keep kept none of ${dropped} groups: keep some, or raise rollout.refills.`
        : "The source of tasks had no task for this iteration: it must have some for each, or iterations must be fewer.",
    )
  if (episodes.some((episode) => isScored(episode) && episode.steps.length > 0))
    return new GigpoError(
      "BAD_ENVIRONMENT",
      `No group has ${leastGroupSize} episodes left that can be learned from: lower rollout.leastGroupSize, or raise rollout.retries.`,
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
      ? `No episode of the iteration can be learned from: whoever plays dropped ${left} of ${episodes.length} (play gave null).`
      : "No episode made a single step: the first prompt and rollout.maxReplyTokens together do not fit the model. " +
          "Raise maxPositions, lower rollout.maxReplyTokens or shorten the prompt.",
  )
}
