import { batchOf } from "../credit/batch.ts"
import { checkCredit } from "../credit/check-credit.ts"
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
  const { groups } = await rollout({
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
    maxPositions: policy.maxPositions,
    hooks,
    moment,
    signal,
    onEpisode: (done, total) => onProgress?.({ stage: "rollout", done, total }),
  })
  const steps = collectSteps(groups.map(({ episodes }) => episodes))
  if (steps.length === 0) throw nothingToLearnFrom(groups)
  clock.lap("rollout")

  const rows = layRows(steps)
  const statistics = await compute(training, rows, steps.length, moment)
  const batch = batchOf(steps, statistics)
  const credit = checkCredit(
    await estimator.estimate(batch, { moment, random: random.fork("credit"), signal }),
    batch,
    estimator.name,
  )
  const credited = [...giveCredit(rows, credit), ...(credit.extraRows ?? [])]
  clock.lap("advantage")
  return { groups, steps, rows: credited, credit }
}

/** What the estimator and the loss asked for, before there is any credit; the loss finds its part in the rows. */
async function compute(
  { policy, signal, options, needs }: Learning,
  rows: readonly LaidRow[],
  steps: number,
  moment: Moment,
): Promise<Partial<Record<Need, readonly Float32Array[]>>> {
  const temperature = at(options.rollout.temperature, moment)
  const statistics: Partial<Record<Need, readonly Float32Array[]>> = {}
  const spread = (found: readonly RowStatistics[], name: keyof RowStatistics) =>
    byStep(rows, steps, (row) => found[row]![name])
  if (needs.has("old") || needs.has("entropy")) {
    const asked = needs.has("entropy") ? (["entropy"] as const) : []
    const current = await policy.logProbs(rows, { needs: asked, temperature, signal })
    if (needs.has("old")) addStatistic(rows, "oldLogProbs", current)
    if (needs.has("old")) statistics.old = spread(current, "logProbs")
    if (needs.has("entropy")) statistics.entropy = spread(current, "entropies")
  }
  if (needs.has("reference")) {
    const reference = await policy.logProbs(rows, { of: "reference", temperature, signal })
    addStatistic(rows, "referenceLogProbs", reference)
    statistics.reference = spread(reference, "logProbs")
  }
  return statistics
}

function nothingToLearnFrom(groups: readonly Group[]): GigpoError {
  const episodes = groups.flatMap((group) => group.episodes)
  if (episodes.length === 0)
    return new GigpoError("BAD_ARGUMENT", "No group was kept: hooks.keep refuses every one of them.")
  const cause = episodes.find((episode) => episode.error)?.error
  if (cause) {
    const message = `No episode of the iteration can be learned from. The first error: ${cause.message}`
    return new GigpoError(cause.code, message, { cause })
  }
  return new GigpoError(
    "BAD_ENVIRONMENT",
    "No episode made a single step: the first prompt and rollout.maxReplyTokens together do not fit the model. " +
      "Raise maxPositions, lower rollout.maxReplyTokens or shorten the prompt.",
  )
}
