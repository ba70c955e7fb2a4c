import { joinTokens } from "../credit/tokens.ts"
import type { SequenceUnit } from "../engine/engine.ts"
import type { Sequence, TokenColumn } from "../engine/sequence.ts"
import { TokenTable } from "../engine/token-table.ts"
import { importanceWeights, type RolloutCorrectionOptions } from "../loss/importance-weights.ts"
import { mismatchInPieces } from "../loss/mismatch.ts"
import { type Pace, type Pieces, tokensOfPiece } from "../util/pace.ts"
import type { SequenceTable } from "./sequence-table.ts"

// Differences between the log-probabilities of sampler and trainer.

/**
 * Returns the metrics of the sampler–trainer mismatch of sequences. Empty if the trainer's log-probabilities are unknown, or a sequence
 * has none of the sampler.
 *
 * @param trainer - log-probabilities of the trainer, [sampled tokens of all sequences].
 */
export async function rowMismatch(
  rows: readonly Sequence[],
  trainer: TokenColumn | undefined,
  pace: Pace,
): Promise<Record<string, number>> {
  if (!trainer || !rows.every(({ segments }) => segments.every((segment) => segment.logProbs))) return {}
  const { segments, offsets } = await TokenTable.paced(rows, pace)
  const sampler = joinTokens(segments.map((segment) => segment.logProbs!))
  return await pace.through(knownMismatch(trainer, sampler, offsets))
}

/** Returns the metrics of the mismatch of a table with recomputed log-probabilities. */
export async function recomputedMismatch(table: SequenceTable, pace: Pace): Promise<Record<string, number>> {
  return await pace.through(knownMismatch(table.columns.oldLogProbs!, table.logProbs, table.layout.offsets))
}

/** Metrics of log-probabilities of the trainer that are not finite where they are unknown. */
function* knownMismatch(
  trainer: TokenColumn,
  sampler: TokenColumn,
  offsets: Int32Array,
): Pieces<Readonly<Record<string, number>>> {
  const known = new Float64Array(trainer)
  for (let t = 0; t < known.length; t++) {
    if (t % tokensOfPiece === 0) yield
    if (!Number.isFinite(known[t])) known[t] = Number.NaN
  }
  return yield* mismatchInPieces(known, sampler, offsets)
}

/**
 * Multiplies the weights of all tokens by their importance weights p_trainer / p_sampler, which correct the policy loss for the mismatch
 * between sampler and trainer.
 */
export function weighByImportance(table: SequenceTable, options: RolloutCorrectionOptions, unit: SequenceUnit): void {
  const sequences = unit === "conversation" ? table.sequenceOffsets : table.layout.offsets
  table.weigh(importanceWeights(table.columns.oldLogProbs!, table.logProbs, sequences, options))
}
