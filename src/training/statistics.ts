import type { Batch, Credit } from "../credit/estimator.ts"
import { klRewards } from "../credit/kl-reward.ts"
import type { TopTokens } from "../engine/engine.ts"
import type { Sequence } from "../engine/sequence.ts"
import { klEstimators } from "../loss/kl-estimators.ts"
import { scheduleValue, type TrainingProgress } from "../options/schedule.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"
import { predictValues } from "./critic.ts"
import { longestSequence } from "./longest-sequence.ts"
import { recomputedMismatch } from "./off-policy.ts"
import type { Learning } from "./prepare.ts"
import { privilegedScorer, withTextsInFront } from "./privileged.ts"
import type { ReturnScale } from "./return-scale.ts"
import type { SequenceTable } from "./sequence-table.ts"

// Token statistics of an iteration, which are computed before the estimator runs.

/**
 * Computes the statistics that estimator and loss need, as columns of the table. Returns views by step for the estimator, and metrics.
 *
 * @param seen additional text of a privileged teacher in front of each step's sequence, [steps]; absent without such a teacher
 */
export async function compute(
  { policy, tokenizer, teacher, critic, scale, signal, options, estimator, loss, kl, needs }: Learning,
  table: SequenceTable,
  progress: TrainingProgress,
  seen?: readonly (string | undefined)[],
): Promise<[Batch["statistics"], Record<string, number>]> {
  const { columns, steps } = table
  const entropy = estimator.needs?.includes("entropy") // the loss gets entropies at the weights of its batch
  const squares = estimator.needs?.includes("squares")
  const learnsFromTeacher = needs.has("teacher") || needs.has("privileged")
  const asks = entropy || squares || needs.has("old") || needs.has("reference") || learnsFromTeacher
  const pace = new Pace(signal)
  const rows = asks || critic ? await pace.through(table.viewInPieces()) : []
  const temperature = scheduleValue(options.rollout.temperature, progress)
  const statistics: { -readonly [name in keyof NonNullable<Batch["statistics"]>]: readonly Float32Array[] } = {}
  let metrics: Record<string, number> = {}
  if (needs.has("old") || entropy || squares) {
    const current = await policy.logProbs(rows, {
      needs: [...(entropy ? (["entropy"] as const) : []), ...(squares ? (["top"] as const) : [])],
      top: squares ? Math.min(mostSquares, policy.vocabularySize) : undefined,
      temperature,
      signal,
    })
    if (needs.has("old")) {
      columns.oldLogProbs = withoutHints(table, current.logProbs)
      statistics.old = table.byStep(current.logProbs)
      metrics = await recomputedMismatch(table, pace)
    }
    if (entropy) statistics.entropy = table.byStep(current.entropies!)
    if (squares) statistics.squares = table.byStep(sumsOfSquares(current.top!))
  }
  // A KL penalty in the reward uses the sampler's log-probabilities if the trainer's are not computed.
  if (kl.place === "reward") statistics.old ??= table.byStep(table.logProbs)
  if (needs.has("reference")) {
    const { logProbs } = await policy.logProbs(rows, { model: "reference", temperature, signal })
    columns.referenceLogProbs = logProbs
    statistics.reference = table.byStep(logProbs)
  }
  if (learnsFromTeacher) {
    const most = loss.teacherTop || undefined
    const { privileged } = options
    const { scorer, of: model } = privileged
      ? privilegedScorer(privileged, policy, teacher)
      : { scorer: teacher!, of: "current" }
    const shown = seen ? await shownTo(rows, seen, tokenizer, policy) : rows
    if (seen) metrics = { ...metrics, "teacher/extra-tokens": extraTokens(shown, rows) }
    const { logProbs, top } = await scorer.logProbs(shown, {
      model,
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

/** Number of most likely tokens whose squared probabilities are summed. The others have less than 1/32 of their probability. */
const mostSquares = 32

/** Σ p² of the most likely tokens at each sampled token, [sampled tokens]. */
function sumsOfSquares({ count, logProbs }: TopTokens): Float32Array {
  return Float32Array.from({ length: logProbs.length / count }, (_, t) => {
    let sum = 0
    for (let i = t * count; i < (t + 1) * count; i++) sum += Math.exp(2 * logProbs[i]!)
    return sum
  })
}

/** Sequences with the additional text of a privileged teacher. */
async function shownTo(
  rows: readonly Sequence[],
  seen: readonly (string | undefined)[],
  tokenizer: Learning["tokenizer"],
  policy: Learning["policy"],
): Promise<Sequence[]> {
  const texts = rows.map(({ segments }) => seen[segments[0]!.step!])
  return await withTextsInFront(rows, texts, tokenizer, longestSequence(policy))
}

/** Mean number of additional tokens of a privileged teacher per sequence. */
function extraTokens(shown: readonly Sequence[], rows: readonly Sequence[]): number {
  const count = (all: readonly Sequence[]) => all.reduce((total, { tokens }) => total + tokens.length, 0)
  return rows.length === 0 ? 0 : (count(shown) - count(rows)) / rows.length
}

/** Log-probabilities of the trainer, except for steps that were sampled with a hint: the trainer's prompt has no hint. */
function withoutHints(table: SequenceTable, trainer: Float32Array): Float32Array {
  if (!table.steps.some(({ record }) => record.offPolicy)) return trainer
  const column = trainer.slice()
  const sampler = table.byStep(table.logProbs)
  for (const [index, own] of table.byStep(column).entries())
    if (table.steps[index]!.record.offPolicy) own.set(sampler[index]!)
  return column
}

/** Subtracts the KL penalty from the rewards of a batch, if it is placed there. Reports the mean KL in nats per token. */
export function withKl({ kl }: Learning, batch: Batch, progress: TrainingProgress): [Batch, Record<string, number>] {
  const weight = kl.place === "loss" ? 0 : scheduleValue(kl.weight, progress)
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

/** Returns the credit with returns in the critic's units. Returns of skipped steps are not converted. */
export function inUnits(credit: Credit, scale: ReturnScale, name: string): Credit {
  const { returns, skip } = credit
  if (!returns)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The estimator ${name} needs values but returned no returns, which the critic is trained on: return them, too.`,
    )
  return { ...credit, returns: returns.map((tokens, step) => (skip?.[step] === 1 ? tokens : scale.toCritic(tokens))) }
}

/** Checks sequences from outside the iteration, and removes the task, episode, values and returns, which do not apply here. */
export function foreignRows(
  rows: readonly Sequence[],
  { needs, loss, estimator }: Pick<Learning, "needs" | "loss" | "estimator">,
): Sequence[] {
  const wanted = [
    ["reference", "referenceLogProbs", "the KL penalty needs; add them, or set loss.klWeight to 0"],
    ["teacher", "teacherLogProbs", `the loss ${loss.name} needs; add them`],
  ] as const
  return rows.map((row, index) => {
    for (const [need, column, why] of wanted)
      if (
        (needs.has(need) || (need === "teacher" && needs.has("privileged"))) &&
        row.segments.some((segment) => !segment[column])
      )
        throw new GigpoError(
          "BAD_ARGUMENT",
          `The estimator ${estimator.name} returned extraSequences[${index}] without ${column}, which ${why}.`,
        )
    return withoutPlace(row)
  })
}

/** Sequence without task, episode, values and returns. */
export function withoutPlace(row: Sequence): Sequence {
  const segments = row.segments.map(({ task: _, episode: __, values: ___, returns: ____, ...segment }) => segment)
  return { ...row, segments }
}
