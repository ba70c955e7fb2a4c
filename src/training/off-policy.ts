import { joinTokens } from "../credit/tokens.ts"
import type { Unit } from "../engine/engine.ts"
import type { Column, Sequence } from "../engine/rows.ts"
import { TokenTable } from "../engine/token-table.ts"
import { type ImportanceOptions, importanceWeights } from "../loss/importance-weights.ts"
import { mismatch } from "../loss/mismatch.ts"
import type { SequenceTable } from "./sequence-table.ts"

// What the sampler said of a token and what the trainer says of it, where they are not the same.

/**
 * How far the trainer's log-probabilities lie from the sampler's, as numbers to report; none where the trainer's are not at hand, or
 * a row was not sampled here.
 *
 * @param trainer [sampled tokens of all rows]
 */
export function rowMismatch(rows: readonly Sequence[], trainer: Column | undefined): Record<string, number> {
  const { spans, offsets } = TokenTable.of(rows)
  if (!trainer || !spans.every((span) => span.logProbs)) return {}
  return mismatch(known(trainer), joinTokens(spans.map((span) => span.logProbs!)), offsets)
}

/** The same of a table with the trainer's log-probabilities. */
export function recomputedMismatch(table: SequenceTable): Record<string, number> {
  return mismatch(known(table.columns.oldLogProbs!), table.logProbs, table.layout.offsets)
}

/** The trainer's numbers, NaN for those that are left out. */
function known(trainer: Column): Column {
  return trainer.map((value) => (Number.isFinite(value) ? value : Number.NaN))
}

/**
 * Multiplies the weight of every token by its importance weight p_trainer / p_sampler, which corrects the policy's loss for having been
 * sampled by another program than the one that learns.
 */
export function weighByImportance(table: SequenceTable, options: ImportanceOptions, unit: Unit): void {
  const sequences = unit === "row" ? table.sequenceOffsets : table.layout.offsets
  table.weigh(importanceWeights(table.columns.oldLogProbs!, table.logProbs, sequences, options))
}
