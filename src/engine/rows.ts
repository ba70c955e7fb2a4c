import type { TopTokens } from "./engine.ts"

/**
 * A training row: tokens, of which spans were sampled. A step that was prompted afresh is a row of one span at its end
 * (`stepSequence`); a conversation that only grows is one row of many, and what its steps share is computed once. Tokens outside
 * the spans are context: they are read and never learned.
 */
export interface Sequence {
  readonly tokens: Int32Array
  /** In order and apart from each other; the first token of a row is never sampled. */
  readonly spans: readonly Segment[]
  /** What came with the tokens (images), in whatever form the engine takes it. */
  readonly attachments?: readonly unknown[]
}

/** One number a token. In training it is float32; what is computed outside of it may be exact. */
export type Column = Float32Array | Float64Array

/** Tokens that were sampled together: the unit of ratios, sequence means and counts. Each has its own credit. */
export interface Segment extends SegmentAdvantages {
  /** Where in the row's tokens it begins, at least 1. */
  readonly start: number
  readonly length: number
}

/** What a loss may know of a span; arrays are [length]. */
export interface SegmentAdvantages {
  /** Log-probabilities under the distribution that was sampled from; absent for what was not sampled (an expert's reply). */
  readonly logProbs?: Float32Array
  /** The same, computed again by the trainer before its first update. Where they are given the ratio starts from these. */
  readonly oldLogProbs?: Float32Array
  /** Under the frozen reference policy. */
  readonly referenceLogProbs?: Float32Array
  /** Under a teacher. */
  readonly teacherLogProbs?: Float32Array
  /** The teacher's most likely tokens at each place, [length × count]. */
  readonly teacherTop?: TopTokens
  /** Sampled by another behaviour than the policy has on these tokens (with a hint, by somebody else): losses may treat it apart. */
  readonly offPolicy?: boolean
  /** What a critic foretold before each token, before its first update. */
  readonly values?: Float32Array
  /** What it should have foretold. */
  readonly returns?: Float32Array
  /** One for the whole span, or one a token. */
  readonly advantage?: number | Float32Array
  /** Weights of the tokens in the policy's loss, e.g. for importance. Default 1. */
  readonly weights?: Float32Array
  /** Scales the width of the clip for this span. Default 1. */
  readonly clipScale?: number
  /** The step of the batch that it is, for losses that look at steps, episodes or tasks. */
  readonly step?: number
  readonly episode?: number
  readonly task?: number
  /** What it was sampled at, where that is not the batch's temperature. */
  readonly temperature?: number
  /** What sampling was constrained by (a grammar), in whatever form the engine takes it. */
  readonly constraint?: unknown
}

/** The row of one step: a prompt and the reply to it. */
export function stepSequence(prompt: Int32Array, reply: Int32Array, credit: SegmentAdvantages = {}): Sequence {
  const tokens = new Int32Array(prompt.length + reply.length)
  tokens.set(prompt)
  tokens.set(reply, prompt.length)
  return { tokens, spans: [{ ...credit, start: prompt.length, length: reply.length }] }
}

/** Weights of a reply's tokens, [tokens], where some were put there (1) and not sampled: these weigh nothing. */
export function sampledWeights(forced: Uint8Array): Float32Array {
  return Float32Array.from(forced, (mark) => 1 - mark)
}

/** How many tokens of these rows were sampled. */
export function sampledTokens(rows: readonly Sequence[]): number {
  let count = 0
  for (const { spans } of rows) for (const { length } of spans) count += length
  return count
}

/** Calls `use` with every span of the rows and the place of its tokens in a flat column, [sampled tokens of all rows]. */
export function eachSpan<Own extends Pick<Segment, "length">>(
  rows: readonly { readonly spans: readonly Own[] }[],
  use: (span: Own, start: number, end: number) => void,
): void {
  let end = 0
  for (const { spans } of rows)
    for (const span of spans) {
      const start = end
      end += span.length
      use(span, start, end)
    }
}

/** Where in the row's tokens the sampled ones stand: of its spans, one after the other. */
export function sampledPositions({ spans }: Sequence): number[] {
  return spans.flatMap(({ start, length }) => Array.from({ length }, (_, i) => start + i))
}
