import { estimate } from "../credit/as-estimator.ts"
import { batchOf } from "../credit/batch.ts"
import type { Credit, Need } from "../credit/estimator.ts"
import type { RowStatistics } from "../engine/engine.ts"
import type { Row } from "../engine/rows.ts"
import { GigpoError } from "../errors.ts"
import { at, type Moment } from "../options/schedule.ts"
import type { Group } from "../rollout/hooks.ts"
import { rollout } from "../rollout/rollout.ts"
import { environmentTasks } from "../rollout/tasks.ts"
import type { Stopwatch } from "./metrics.ts"
import { iterationRandom, type Learning, type Training } from "./prepare.ts"
import { addStatistic, byStep, type CollectedStep, collectSteps, giveCredit, type LaidRow, layRows } from "./rows.ts"

/** What one rollout gave to learn from. */
export interface Experience {
  readonly groups: readonly Group[]
  /** Groups that `hooks.keep` dropped. */
  readonly dropped: number
  readonly steps: readonly CollectedStep[]
  /** With their credit. */
  readonly rows: readonly Row[]
  readonly credit: Credit
}

/** Rollout, score and keep, rows, statistics, credit. */
export async function collect<Task>(training: Training<Task>, moment: Moment, clock: Stopwatch): Promise<Experience> {
  const { policy, tokenizer, environment, play, hooks, signal, onProgress, options, estimator } = training
  const random = iterationRandom(training, moment.iteration)
  using offered = environment && environmentTasks(environment, "train", random.fork("tasks"))
  const { groups, dropped } = await rollout({
    policy,
    tokenizer,
    environment,
    play,
    tasks: (training.tasks ?? offered)!,
    groups: options.groups,
    groupSize: options.groupSize,
    random: random.fork("rollout"),
    ...options.rollout,
    temperature: at(options.rollout.temperature, moment),
    maxPositions: Math.min(policy.maxPositions, policy.longestRow ?? policy.maxPositions),
    hooks,
    moment,
    signal,
    onEpisode: (done, total) => onProgress?.({ stage: "rollout", done, total }),
  })
  const steps = collectSteps(groups.map(({ episodes }) => episodes))
  if (steps.length === 0) throw nothingToLearnFrom(groups, dropped.length)
  clock.lap("rollout")

  const rows = layRows(steps)
  const statistics = await compute(training, rows, steps.length, moment)
  const batch = batchOf(steps, statistics)
  const credit = await estimate(estimator, batch, { moment, random: random.fork("credit"), signal })
  const credited = [...giveCredit(rows, credit), ...(credit.extraRows ?? [])]
  clock.lap("advantage")
  return { groups, dropped: dropped.length, steps, rows: credited, credit }
}

/** What the estimator, and of the loss what does not change in the update, asked for; the loss finds it in the rows. */
async function compute(
  { policy, signal, options, estimator, needs }: Learning,
  rows: readonly LaidRow[],
  steps: number,
  moment: Moment,
): Promise<Partial<Record<Need, readonly Float32Array[]>>> {
  const temperature = at(options.rollout.temperature, moment)
  const statistics: Partial<Record<Need, readonly Float32Array[]>> = {}
  const spread = (found: readonly RowStatistics[], name: keyof RowStatistics) =>
    byStep(rows, steps, (row) => found[row]![name])
  const entropy = estimator.needs?.includes("entropy") // the loss's is of the weights at its own batch
  if (needs.has("old") || entropy) {
    const current = await policy.logProbs(rows, { needs: entropy ? ["entropy"] : [], temperature, signal })
    if (needs.has("old")) addStatistic(rows, "oldLogProbs", current)
    if (needs.has("old")) statistics.old = spread(current, "logProbs")
    if (entropy) statistics.entropy = spread(current, "entropies")
  }
  if (needs.has("reference")) {
    const reference = await policy.logProbs(rows, { of: "reference", temperature, signal })
    addStatistic(rows, "referenceLogProbs", reference)
    statistics.reference = spread(reference, "logProbs")
  }
  return statistics
}

function nothingToLearnFrom(groups: readonly Group[], dropped: number): GigpoError {
  const episodes = groups.flatMap((group) => group.episodes)
  if (episodes.length === 0)
    return new GigpoError(
      "BAD_ARGUMENT",
      dropped > 0
        ? `hooks.keep kept none of ${dropped} groups: keep some, or raise rollout.refills.`
        : "The source of tasks had no task for this iteration: it must have some for each, or iterations must be fewer.",
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
