import { estimate } from "../credit/as-estimator.ts"
import { batchInPieces } from "../credit/batch.ts"
import type { Credit, Replay } from "../credit/estimator.ts"
import type { Sequence } from "../engine/sequence.ts"
import { scheduleValues, type TrainingProgress } from "../options/schedule.ts"
import type { Group } from "../rollout/hooks.ts"
import { rememberedEpisodes } from "../runs/remembered.ts"
import { mapInPieces, Pace } from "../util/pace.ts"
import { valueMetrics } from "./critic.ts"
import { loopShare } from "./episode-shares.ts"
import { expertData } from "./expert-data.ts"
import { fillForced } from "./forced-tokens.ts"
import type { Stopwatch } from "./metrics.ts"
import { observationRows } from "./observation-rows.ts"
import { weighByImportance } from "./off-policy.ts"
import { iterationRandom, type Training } from "./prepare.ts"
import { seenTexts } from "./privileged.ts"
import { replayOf } from "./replay.ts"
import type { Rollouts } from "./rollouts.ts"
import { SequenceTable } from "./sequence-table.ts"
import { shapeRewards } from "./shaping.ts"
import { compute, foreignRows, inUnits, withKl } from "./statistics.ts"
import { type CollectedStep, learnedEpisodes, withTexts } from "./steps.ts"

/** Data of one iteration: episodes, steps, sequences and advantages. */
export interface Experience {
  readonly groups: readonly Group[]
  /** Groups that were played and not kept. */
  readonly dropped: readonly Group[]
  readonly steps: readonly CollectedStep[]
  /** Sequences with advantages. */
  readonly sequences: readonly Sequence[]
  readonly credit: Credit
  /** Sequences with updates and a loss of their own. */
  readonly replay: Replay | undefined
  readonly metrics: Readonly<Record<string, number>>
}

/**
 * Returns the data of one iteration: its rollout, with rewards, statistics and advantages. With `maxStaleness: 1`, the next rollout begins in
 * between.
 */
export async function collect<Task>(
  training: Training<Task>,
  progress: TrainingProgress,
  clock: Stopwatch,
  rollouts: Rollouts<Task>,
): Promise<Experience> {
  const { environment, tokenizer, signal, options, estimator, needs, scale } = training
  const random = iterationRandom(training, progress.iteration)
  const { groups, dropped, collected, baselines, metrics: timed } = await rollouts.next(progress, clock)
  const pace = new Pace(signal)
  if (!training.agentLoop) environment?.memory?.update?.(rememberedEpisodes([...groups, ...dropped]))
  await rollouts.ahead(progress)
  const { minGroupSize } = options.rollout
  const members = groups.map(({ episodes }) => episodes)

  const shaped = await pace.through(shapeRewards(collected, options, progress, baselines))
  const steps = needs.has("text") ? await pace.through(withTexts(shaped, tokenizer)) : shaped
  await pace.rest()
  const table = await pace.through(SequenceTable.inPieces(steps))
  await pace.rest()
  await fillForced(training, table, progress)
  const seen = training.sight && (await seenTexts(training.sight, groups, steps))
  const [statistics, metrics] = await compute(training, table, progress, seen)
  await pace.rest()
  const [batch, withheld] = withKl(training, await pace.through(batchInPieces(steps, statistics)), progress)
  await pace.rest()
  const credit = await estimate(estimator, batch, { progress, random: random.derive("credit"), signal })
  await pace.rest()
  const inOwnUnits = scale ? inUnits(credit, scale, estimator.name) : credit
  const credited = table.withCredit(inOwnUnits)
  if (options.rolloutCorrection)
    weighByImportance(credited, scheduleValues(options.rolloutCorrection, progress), options.unit)
  const shown = await expertData(training, progress, random.derive("expert"), groups as readonly Group<Task>[])
  const answers = await observationRows(training, steps, progress)
  const replay = credit.replay && replayOf(credit.replay, options.loss)
  const extra = [...foreignRows(credit.extraSequences ?? [], training), ...shown, ...answers]
  clock.lap("advantage")
  await pace.rest()
  const critic = scale ? valueMetrics(credited, inOwnUnits.returns!, scale) : {}
  const wasted = loopShare(learnedEpisodes(members, minGroupSize), batch.anchorGroups)
  const found = {
    ...timed,
    ...metrics,
    ...withheld,
    ...critic,
    ...(wasted !== undefined && { "episode/loop-steps": wasted }),
  }
  const trainer = table.columns.oldLogProbs && table.byStep(table.columns.oldLogProbs)
  const withTrainer = (step: CollectedStep, at: number) => ({ ...step, trainerLogProbs: trainer![at]! })
  const scored = trainer ? await pace.through(mapInPieces(steps, withTrainer)) : steps
  const sequences = [...(await pace.through(credited.viewInPieces())), ...extra]
  return { groups, dropped, steps: scored, sequences, credit, replay, metrics: found }
}
