import { joinTokens } from "../credit/tokens.ts"
import type { Unit } from "../engine/engine.ts"
import type { Column, Row, Span } from "../engine/rows.ts"
import { type ImportanceOptions, importanceWeights } from "../loss/importance-weights.ts"
import { mismatch } from "../loss/mismatch.ts"
import { SpanTable } from "../loss/span-table.ts"
import type { LaidRow } from "./rows.ts"

// What the sampler said of a token and what the trainer says of it, where they are not the same.

/**
 * How far the trainer's log-probabilities lie from the sampler's, as numbers to report; none where the trainer's are not at hand, or
 * a row was not sampled here.
 *
 * @param trainer [sampled tokens of all rows]
 */
export function rowMismatch(rows: readonly Row[], trainer: Column | undefined): Record<string, number> {
  const { spans, offsets } = new SpanTable(rows)
  if (!trainer || !spans.every((span) => span.logProbs)) return {}
  const computed = trainer.map((value) => (Number.isFinite(value) ? value : Number.NaN)) // the others are left out
  return mismatch(computed, column(spans, "logProbs"), offsets)
}

/** The same of rows that hold both. */
export function recomputedMismatch(rows: readonly LaidRow[]): Record<string, number> {
  const spans = rows.flatMap((row) => row.spans)
  return rowMismatch(rows, column(spans, "oldLogProbs"))
}

/**
 * Gives every token its importance weight p_trainer / p_sampler, by which the policy's loss is corrected for having been sampled by
 * another program than the one that learns. What weights there are already are multiplied.
 */
export function weighByImportance(rows: readonly LaidRow[], options: ImportanceOptions, unit: Unit): void {
  const { spans, offsets, rowOffsets } = new SpanTable(rows)
  const sequences = unit === "row" ? rowOffsets : offsets
  const weights = importanceWeights(column(spans, "oldLogProbs"), column(spans, "logProbs"), sequences, options)
  let at = 0
  for (const span of rows.flatMap((row) => row.spans)) {
    const before = span.weights
    span.weights = Float32Array.from({ length: span.length }, (_, i) => weights[at + i]! * (before?.[i] ?? 1))
    at += span.length
  }
}

function column(spans: readonly Span[], name: "logProbs" | "oldLogProbs"): Float64Array {
  return joinTokens(spans.map((span) => span[name]!))
}
