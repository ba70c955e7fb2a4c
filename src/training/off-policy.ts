import { joinTokens } from "../credit/tokens.ts"
import type { SequenceUnit } from "../engine/engine.ts"
import type { Column, Sequence } from "../engine/rows.ts"
import { TokenTable } from "../engine/token-table.ts"
import { type ImportanceOptions, importanceWeights } from "../loss/importance-weights.ts"
import { mismatch } from "../loss/mismatch.ts"
import type { SequenceTable } from "./sequence-table.ts"

// Differences between the log-probabilities of sampler and trainer.

/**
 * Returns the metrics of the sampler–trainer mismatch of sequences. Empty if the trainer's log-probabilities are unknown, or a sequence
 * has none of the sampler.
 *
 * @param trainer - log-probabilities of the trainer, [sampled tokens of all sequences].
 */
export function rowMismatch(rows: readonly Sequence[], trainer: Column | undefined): Record<string, number> {
  const { spans, offsets } = TokenTable.of(rows)
  if (!trainer || !spans.every((span) => span.logProbs)) return {}
  return mismatch(known(trainer), joinTokens(spans.map((span) => span.logProbs!)), offsets)
}

/** Returns the metrics of the mismatch of a table with recomputed log-probabilities. */
export function recomputedMismatch(table: SequenceTable): Record<string, number> {
  return mismatch(known(table.columns.oldLogProbs!), table.logProbs, table.layout.offsets)
}

/** Log-probabilities of the trainer, NaN if unknown. */
function known(trainer: Column): Column {
  return trainer.map((value) => (Number.isFinite(value) ? value : Number.NaN))
}

/**
 * Multiplies the weights of all tokens by their importance weights p_trainer / p_sampler, which correct the policy loss for the mismatch
 * between sampler and trainer.
 */
export function weighByImportance(table: SequenceTable, options: ImportanceOptions, unit: SequenceUnit): void {
  const sequences = unit === "sequence" ? table.sequenceOffsets : table.layout.offsets
  table.weigh(importanceWeights(table.columns.oldLogProbs!, table.logProbs, sequences, options))
}
