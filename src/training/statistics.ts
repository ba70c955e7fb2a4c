import type { Batch, Credit } from "../credit/estimator.ts"
import { klRewards } from "../credit/kl-reward.ts"
import type { Sequence } from "../engine/rows.ts"
import { klEstimators } from "../loss/kl-estimators.ts"
import { scheduleValue, type TrainingProgress } from "../options/schedule.ts"
import { GigpoError } from "../util/errors.ts"
import { predictValues } from "./critic.ts"
import { recomputedMismatch } from "./off-policy.ts"
import type { Learning } from "./prepare.ts"
import type { ReturnScale } from "./return-scale.ts"
import type { SequenceTable } from "./sequence-table.ts"

// What is known of an iteration's rows before credit is given, and in which units it goes back to them.

/** Computes what the estimator and the loss need as columns of the table, and gives the estimator's views of them. */
export async function compute(
  { policy, teacher, critic, scale, signal, options, estimator, loss, kl, needs }: Learning,
  table: SequenceTable,
  moment: TrainingProgress,
): Promise<[Batch["statistics"], Record<string, number>]> {
  const { columns, steps } = table
  const entropy = estimator.needs?.includes("entropy") // the loss's is of the weights at its own batch
  const asks = entropy || needs.has("old") || needs.has("reference") || needs.has("teacher")
  const rows = asks || critic ? table.toSequences() : []
  const temperature = scheduleValue(options.rollout.temperature, moment)
  const statistics: { -readonly [name in keyof NonNullable<Batch["statistics"]>]: readonly Float32Array[] } = {}
  let metrics: Record<string, number> = {}
  if (needs.has("old") || entropy) {
    const current = await policy.logProbs(rows, { needs: entropy ? ["entropy"] : [], temperature, signal })
    if (needs.has("old")) {
      columns.oldLogProbs = withoutHints(table, current.logProbs)
      statistics.old = table.byStep(current.logProbs)
      metrics = recomputedMismatch(table)
    }
    if (entropy) statistics.entropy = table.byStep(current.entropies!)
  }
  // Where the trainer's are not asked for, the sampler's are as good for a KL in the reward.
  if (kl.place === "reward") statistics.old ??= table.byStep(table.logProbs)
  if (needs.has("reference")) {
    const { logProbs } = await policy.logProbs(rows, { of: "reference", temperature, signal })
    columns.referenceLogProbs = logProbs
    statistics.reference = table.byStep(logProbs)
  }
  if (needs.has("teacher")) {
    const most = loss.teacherTop || undefined
    const { logProbs, top } = await teacher!.logProbs(rows, {
      needs: most ? ["top"] : [],
      top: most,
      temperature,
      signal,
    })
    columns.teacherLogProbs = logProbs
    statistics.teacher = table.byStep(logProbs)
    if (most && top) columns.teacherTop = top
  }
  if (critic && scale) {
    scale.fit(steps)
    columns.values = await predictValues(critic, rows, signal)
    statistics.value = table.byStep(scale.toRewards(columns.values))
  }
  return [statistics, metrics]
}

/** Steps that were sampled with a hint keep the sampler's log-probabilities: the trainer's are of another prompt. */
function withoutHints(table: SequenceTable, trainer: Float32Array): Float32Array {
  if (!table.steps.some(({ record }) => record.offPolicy)) return trainer
  const column = trainer.slice()
  const sampler = table.byStep(table.logProbs)
  for (const [index, own] of table.byStep(column).entries())
    if (table.steps[index]!.record.offPolicy) own.set(sampler[index]!)
  return column
}

/** Where the KL stands in the reward: the batch with what it takes off, and how far the policy is, in nats a token. */
export function withKl({ kl }: Learning, batch: Batch, moment: TrainingProgress): [Batch, Record<string, number>] {
  const weight = kl.place === "loss" ? 0 : scheduleValue(kl.weight, moment)
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

/** The same credit with returns as the critic has them. What a skipped step holds is not looked at. */
export function inUnits(credit: Credit, scale: ReturnScale, name: string): Credit {
  const { returns, skip } = credit
  if (!returns)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The estimator ${name} needs values, but gives no returns: a critic could not learn.`,
    )
  return { ...credit, returns: returns.map((tokens, step) => (skip?.[step] === 1 ? tokens : scale.toCritic(tokens))) }
}

/** Rows of other iterations, or of others, which know nothing of this one's tasks and episodes, nor its critic of theirs. */
export function foreignRows(
  rows: readonly Sequence[],
  { needs, loss, estimator }: Pick<Learning, "needs" | "loss" | "estimator">,
): Sequence[] {
  const wanted = [
    ["reference", "referenceLogProbs", "the KL needs; give them, or set loss.klWeight to 0"],
    ["teacher", "teacherLogProbs", `the loss ${loss.name} needs; give them`],
  ] as const
  return rows.map((row, index) => {
    for (const [need, column, why] of wanted)
      if (needs.has(need) && row.spans.some((span) => !span[column]))
        throw new GigpoError(
          "BAD_ARGUMENT",
          `The estimator ${estimator.name} gave extraRows[${index}] without ${column}, which ${why}.`,
        )
    const spans = row.spans.map(({ task: _, episode: __, values: ___, returns: ____, ...span }) => span)
    return { ...row, spans }
  })
}
