import type { Segment, Sequence } from "../engine/rows.ts"
import { joined } from "../util/joined.ts"
import type { Course, CourseSpan } from "./course.ts"

/** Completion with its prompt. */
export interface PromptedCompletion {
  readonly prompt: string
  readonly reply: string
  /** Tokens of the completion. */
  readonly tokens: Int32Array
  /** Weight in the loss; 0 for context. */
  readonly weight: number
  /** Rewards of the conversation, if known. */
  readonly course?: Course
}

/**
 * Builder of sequences from completions. A prompt that extends the last prompt and its completion continues their sequence, whose tokens are
 * kept. Any other prompt starts a sequence; this includes prompts of templates that drop earlier thinking.
 */
export class GrowingRows {
  readonly #encode: (text: string) => Int32Array
  readonly #rows: { text: string; length: number; readonly pieces: Int32Array[]; readonly spans: Segment[] }[] = []

  constructor(encode: (text: string) => Int32Array) {
    this.#encode = encode
  }

  /** Adds a completion. Returns the length of the prompt in tokens if it starts a sequence, otherwise undefined. */
  add({ prompt, reply, tokens, weight, course }: PromptedCompletion): number | undefined {
    const last = this.#rows.at(-1)
    const goesOn = last && prompt.startsWith(last.text) ? last : undefined
    const row = goesOn ?? { text: "", length: 0, pieces: [], spans: [] }
    if (!goesOn) this.#rows.push(row)
    const added = this.#encode(prompt.slice(row.text.length))
    const start = row.length + added.length
    row.pieces.push(added, tokens)
    row.length = start + tokens.length
    row.text = prompt + reply
    const length = tokens.length
    if (weight > 0 && length > 0 && start > 0) {
      const span: CourseSpan = { start, length, ...(course && { course }) }
      row.spans.push(weight === 1 ? span : { ...span, weights: new Float32Array(length).fill(weight) })
    }
    return goesOn ? undefined : added.length
  }

  /** Returns the sequences with a segment, without the tokens after the last segment. */
  rows(): Sequence[] {
    return this.#rows
      .filter(({ spans }) => spans.length > 0)
      .map(({ pieces, spans }) => {
        const { start, length } = spans.at(-1)!
        return { tokens: joined(Int32Array, pieces).subarray(0, start + length), spans }
      })
  }
}
