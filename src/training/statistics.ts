import type { Batch, Credit } from "../credit/estimator.ts"
import { klRewards } from "../credit/kl-reward.ts"
import type { RowStatistics } from "../engine/engine.ts"
import type { Row } from "../engine/rows.ts"
import { GigpoError } from "../errors.ts"
import { klEstimators } from "../loss/kl-estimators.ts"
import { at, type Moment } from "../options/schedule.ts"
import { foretell } from "./critic.ts"
import { recomputedMismatch } from "./off-policy.ts"
import type { Learning } from "./prepare.ts"
import type { ReturnScale } from "./return-scale.ts"
import { addColumn, addTeacherTop, byStep, type CollectedStep, type LaidRow } from "./rows.ts"

// What is known of an iteration's rows before credit is given, and in which units it goes back to them.

/** What the estimator, and of the loss what does not change in the update, asked for; the loss finds it in the rows. */
export async function compute(
  { policy, teacher, critic, scale, signal, options, estimator, loss, kl, needs }: Learning,
  rows: readonly LaidRow[],
  steps: readonly CollectedStep[],
  moment: Moment,
): Promise<[Batch["statistics"], Record<string, number>]> {
  const temperature = at(options.rollout.temperature, moment)
  const statistics: { -readonly [name in keyof NonNullable<Batch["statistics"]>]: readonly Float32Array[] } = {}
  const spread = (found: readonly RowStatistics[], name: "logProbs" | "entropies") =>
    byStep(rows, steps.length, (row) => found[row]![name])
  let metrics: Record<string, number> = {}
  const entropy = estimator.needs?.includes("entropy") // the loss's is of the weights at its own batch
  if (needs.has("old") || entropy) {
    const current = await policy.logProbs(rows, { needs: entropy ? ["entropy"] : [], temperature, signal })
    if (needs.has("old")) {
      addColumn(rows, "oldLogProbs", (row) => current[row]!.logProbs)
      // What was sampled with a hint keeps what it was sampled by: the trainer's are of another prompt.
      for (const { spans } of rows) for (const span of spans) if (span.offPolicy) span.oldLogProbs = span.logProbs!
      statistics.old = spread(current, "logProbs")
      metrics = recomputedMismatch(rows)
    }
    if (entropy) statistics.entropy = spread(current, "entropies")
  }
  // Where the trainer's are not asked for, the sampler's are as good for a KL in the reward.
  if (kl.place === "reward") statistics.old ??= sampledLogProbs(rows)
  if (needs.has("reference")) {
    const reference = await policy.logProbs(rows, { of: "reference", temperature, signal })
    addColumn(rows, "referenceLogProbs", (row) => reference[row]!.logProbs)
    statistics.reference = spread(reference, "logProbs")
  }
  if (needs.has("teacher")) {
    const top = loss.teacherTop || undefined
    const found = await teacher!.logProbs(rows, { needs: top ? ["top"] : [], top, temperature, signal })
    addColumn(rows, "teacherLogProbs", (row) => found[row]!.logProbs)
    statistics.teacher = spread(found, "logProbs")
    if (top) addTeacherTop(rows, (row) => found[row]!.top)
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

/** One array a step. */
function sampledLogProbs(rows: readonly LaidRow[]): Float32Array[] {
  const found: Float32Array[] = []
  for (const { spans } of rows) for (const { step, logProbs } of spans) found[step] = logProbs!
  return found
}

/** Where the KL stands in the reward: the batch with what it takes off, and how far the policy is, in nats a token. */
export function withKl({ kl }: Learning, batch: Batch, moment: Moment): [Batch, Record<string, number>] {
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
  rows: readonly Row[],
  { needs, loss, estimator }: Pick<Learning, "needs" | "loss" | "estimator">,
): Row[] {
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
