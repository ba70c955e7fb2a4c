import type { Segment, Sequence } from "../engine/rows.ts"
import { joined } from "../util/joined.ts"
import type { Course, CourseSpan } from "./course.ts"

/** A reply, and the prompt that it was given to. */
export interface Said {
  readonly prompt: string
  readonly reply: string
  /** Of the reply. */
  readonly tokens: Int32Array
  /** What it weighs in the loss; 0 where it is context alone. */
  readonly weight: number
  /** What followed from it, where that is known. */
  readonly course?: Course
}

/**
 * Lays replies into rows: a prompt that goes on from the last prompt and its reply goes on in their row, whose tokens stay as they are;
 * any other begins a row. Templates that drop earlier thoughts make rows of their own of the replies behind these.
 */
export class GrowingRows {
  readonly #encode: (text: string) => Int32Array
  readonly #rows: { text: string; length: number; readonly pieces: Int32Array[]; readonly spans: Segment[] }[] = []

  constructor(encode: (text: string) => Int32Array) {
    this.#encode = encode
  }

  /** Tokens of the prompt where it begins a row. */
  add({ prompt, reply, tokens, weight, course }: Said): number | undefined {
    const last = this.#rows.at(-1)
    const goesOn = last && prompt.startsWith(last.text) ? last : undefined
    const row = goesOn ?? { text: "", length: 0, pieces: [], spans: [] }
    if (!goesOn) this.#rows.push(row)
    const asked = this.#encode(prompt.slice(row.text.length))
    const start = row.length + asked.length
    row.pieces.push(asked, tokens)
    row.length = start + tokens.length
    row.text = prompt + reply
    const length = tokens.length
    if (weight > 0 && length > 0 && start > 0) {
      const span: CourseSpan = { start, length, ...(course && { course }) }
      row.spans.push(weight === 1 ? span : { ...span, weights: new Float32Array(length).fill(weight) })
    }
    return goesOn ? undefined : asked.length
  }

  /** Those of which something is learned, without what follows that. */
  rows(): Sequence[] {
    return this.#rows
      .filter(({ spans }) => spans.length > 0)
      .map(({ pieces, spans }) => {
        const { start, length } = spans.at(-1)!
        return { tokens: joined(Int32Array, pieces).subarray(0, start + length), spans }
      })
  }
}
