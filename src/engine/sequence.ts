import type { TopTokens } from "./engine.ts"

/**
 * Training sequence: tokens, with segments that were sampled. A step with a separate prompt is a sequence with one
 * segment at its end (`stepSequence`). A growing conversation is one sequence with several segments, whose shared part
 * is computed once. Tokens outside the segments are context and not in the loss.
 */
export interface Sequence {
  /** Token ids, [tokens]. */
  readonly tokens: Int32Array
  /** Segments in order, without overlap. The first token of a sequence is never sampled. */
  readonly segments: readonly Segment[]
  /** Non-text inputs (images), in the engine's own form. */
  readonly attachments?: readonly unknown[]
}

/** One number per token: float32 in training; float64 for exact computations outside of training. */
export type TokenColumn = Float32Array | Float64Array

/** Tokens that were sampled together: the unit of ratios, sequence means and counts, with its own advantage. */
export interface Segment extends SegmentAdvantages {
  /** First position in the sequence's tokens, at least 1. */
  readonly start: number
  /** Number of sampled tokens, at least 1. */
  readonly length: number
}

/** Inputs of a loss for one segment; arrays are [length]. */
export interface SegmentAdvantages {
  /**
   * Log-probabilities under the distribution that was sampled from; absent for tokens that were not sampled (an
   * expert's completion).
   */
  readonly logProbs?: Float32Array
  /** Log-probabilities recomputed by the trainer before its first update. If given, the importance ratio uses them. */
  readonly oldLogProbs?: Float32Array
  /** Log-probabilities under the frozen reference policy. */
  readonly referenceLogProbs?: Float32Array
  /** Log-probabilities under a teacher. */
  readonly teacherLogProbs?: Float32Array
  /** Most likely tokens of the teacher per position, [length × count]. */
  readonly teacherTop?: TopTokens
  /**
   * Whether the segment was sampled off-policy (with a hint, or by another policy): losses may treat it differently.
   */
  readonly offPolicy?: boolean
  /** Predictions of the critic before each token, before its first update. */
  readonly values?: Float32Array
  /** Returns that the critic should predict. */
  readonly returns?: Float32Array
  /** Advantage of the whole segment, or one per token. */
  readonly advantage?: number | Float32Array
  /** Weights of the tokens in the policy loss, e.g. importance weights. Default 1. */
  readonly weights?: Float32Array
  /** Factor of the clip range for this segment. Default 1. */
  readonly clipScale?: number
  /** Index of the step in the batch, for losses that consider steps, episodes or tasks. */
  readonly step?: number
  /** Index of the episode in the batch. */
  readonly episode?: number
  /** Index of the task in the batch. */
  readonly task?: number
  /** Sampling temperature, if different from that of the batch. */
  readonly temperature?: number
  /** Constraint of the sampling (a grammar), in the engine's own form. */
  readonly constraint?: unknown
}

/** Returns the training sequence of one step: a prompt and its completion. */
export function stepSequence(prompt: Int32Array, completion: Int32Array, credit: SegmentAdvantages = {}): Sequence {
  const tokens = new Int32Array(prompt.length + completion.length)
  tokens.set(prompt)
  tokens.set(completion, prompt.length)
  return { tokens, segments: [{ ...credit, start: prompt.length, length: completion.length }] }
}

/** [tokens] Weights of a completion's tokens: 0 for forced tokens, 1 for sampled ones. */
export function sampledWeights(forced: Uint8Array): Float32Array {
  return Float32Array.from(forced, (mark) => 1 - mark)
}

/** Returns the number of sampled tokens in the sequences. */
export function sampledTokens(sequences: readonly Sequence[]): number {
  let count = 0
  for (const { segments } of sequences) for (const { length } of segments) count += length
  return count
}

/** Calls `use` with every segment and the range of its tokens in a flat column, [sampled tokens of all sequences]. */
export function eachSegment<Own extends Pick<Segment, "length">>(
  sequences: readonly { readonly segments: readonly Own[] }[],
  use: (segment: Own, start: number, end: number) => void,
): void {
  let end = 0
  for (const { segments } of sequences)
    for (const segment of segments) {
      const start = end
      end += segment.length
      use(segment, start, end)
    }
}

/** Returns the positions of the sampled tokens in a sequence, segment after segment. */
export function sampledPositions({ segments }: Sequence): number[] {
  return segments.flatMap(({ start, length }) => Array.from({ length }, (_, i) => start + i))
}
