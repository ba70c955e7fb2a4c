import type { Unit } from "../engine/engine.ts"
import type { Row, Span } from "../engine/rows.ts"
import { type ImportanceOptions, importanceWeights } from "../loss/importance-weights.ts"
import { mismatch } from "../loss/mismatch.ts"
import type { LaidRow } from "./rows.ts"

// What the sampler said of a token and what the trainer says of it, where they are not the same.

/**
 * How far the trainer's log-probabilities lie from the sampler's, as numbers to report; none where the trainer's are not at hand, or
 * a row was not sampled here.
 *
 * @param trainer [sampled tokens of all rows]
 */
export function rowMismatch(rows: readonly Row[], trainer: Float32Array | undefined): Record<string, number> {
  const spans = rows.flatMap((row) => row.spans)
  if (!trainer || !spans.every((span) => span.logProbs)) return {}
  const computed = trainer.map((value) => (Number.isFinite(value) ? value : Number.NaN)) // the others are left out
  return mismatch(computed, joined(spans, "logProbs"), offsetsOf(spans.map((span) => span.length)))
}

/** The same of rows that hold both. */
export function recomputedMismatch(rows: readonly LaidRow[]): Record<string, number> {
  return rowMismatch(
    rows,
    joined(
      rows.flatMap((row) => row.spans),
      "oldLogProbs",
    ),
  )
}

/**
 * Gives every token its importance weight p_trainer / p_sampler, by which the policy's loss is corrected for having been sampled by
 * another program than the one that learns. What weights there are already are multiplied.
 */
export function weighByImportance(rows: readonly LaidRow[], options: ImportanceOptions, unit: Unit): void {
  const spans = rows.flatMap((row) => row.spans)
  const lengths = unit === "row" ? rows.map((row) => countTokens(row.spans)) : spans.map((span) => span.length)
  const trainer = joined(spans, "oldLogProbs")
  const weights = importanceWeights(trainer, joined(spans, "logProbs"), offsetsOf(lengths), options)
  let at = 0
  for (const span of spans) {
    const before = span.weights
    span.weights = Float32Array.from({ length: span.length }, (_, i) => weights[at + i]! * (before?.[i] ?? 1))
    at += span.length
  }
}

function joined(spans: readonly Span[], name: "logProbs" | "oldLogProbs"): Float32Array {
  const all = new Float32Array(countTokens(spans))
  let at = 0
  for (const span of spans) {
    all.set(span[name]!, at)
    at += span.length
  }
  return all
}

function countTokens(spans: readonly Span[]): number {
  return spans.reduce((sum, span) => sum + span.length, 0)
}

function offsetsOf(lengths: readonly number[]): Int32Array {
  const offsets = new Int32Array(lengths.length + 1)
  for (const [i, length] of lengths.entries()) offsets[i + 1] = offsets[i]! + length
  return offsets
}
