import { isFloat32Array } from "node:util/types"
import { GigpoError } from "../util/errors.ts"
import type { Pace } from "../util/pace.ts"
import { Layout, nameOf } from "./layout.ts"
import type { Segment, Sequence } from "./sequence.ts"

/** Names of the segment fields with numbers per sampled token. */
export type ColumnName =
  | "logProbs"
  | "oldLogProbs"
  | "referenceLogProbs"
  | "teacherLogProbs"
  | "advantage"
  | "weights"
  | "returns"
  | "values"

type Numbers = Float32Array | Float64Array

/**
 * Sampled tokens of all sequences as one table: sequences and their segments in order. Losses and engines read columns of it.
 * The table copies the structure of the sequences. The arrays of the segments are read when a column is created.
 */
export class TokenTable {
  readonly sequences: readonly Sequence[]
  readonly segments: readonly Segment[]
  /** Index of the sequence of each segment, [segments]. */
  readonly segmentSequences: Int32Array
  /** Ranges of the segments, [segments + 1]: segment s has the sampled tokens offsets[s] … offsets[s + 1] - 1. */
  readonly offsets: Int32Array
  /** Ranges of the sequences, [sequences + 1], in the same form. */
  readonly sequenceOffsets: Int32Array
  /** Number of tokens of all sequences, sampled or not. */
  readonly length: number

  /** Creates the table. Throws `BAD_ARGUMENT` for a sequence with invalid tokens or segments. */
  static of(rows: readonly Sequence[]): TokenTable {
    const layout = new Layout(rows)
    for (let row = 0; row < rows.length; row++) layout.add(row)
    return new TokenTable(layout)
  }

  /** Creates the table of many sequences in short pieces, so that the event loop is not blocked. */
  static async paced(rows: readonly Sequence[], pace: Pace): Promise<TokenTable> {
    const layout = new Layout(rows)
    for (let row = 0; row < rows.length; row++) {
      if (pace.due()) await pace.rest()
      layout.add(row)
    }
    return new TokenTable(layout)
  }

  private constructor({ sequences, segments, segmentSequences, ends, rowEnds, length }: Layout) {
    this.sequences = sequences
    this.segments = segments
    this.segmentSequences = new Int32Array(segmentSequences)
    this.offsets = new Int32Array(ends)
    this.sequenceOffsets = new Int32Array(rowEnds)
    this.length = length
  }

  /** Number of sampled tokens. */
  get tokens(): number {
    return this.offsets.at(-1)!
  }

  has(name: keyof Segment): boolean {
    return this.segments.some((segment) => segment[name] !== undefined)
  }

  everyHas(name: keyof Segment): boolean {
    return this.segments.length > 0 && this.segments.every((segment) => segment[name] !== undefined)
  }

  /**
   * Returns a column, [sampled tokens], from the first of the named fields that a segment has. A field is an array, or a number for
   * the whole segment.
   *
   * @param otherwise value for segments without the fields; by default such segments are rejected
   * @throws GigpoError `BAD_ARGUMENT` for an array of another length, `NON_FINITE` for a number that is not finite
   */
  column(names: ColumnName | readonly [ColumnName, ColumnName], otherwise?: number): Float32Array {
    return this.fill(new Float32Array(this.tokens), names, otherwise)
  }

  /** Fills a given array with a column, as `column` does. */
  fill<Column extends Numbers>(
    column: Column,
    names: ColumnName | readonly [ColumnName, ColumnName],
    otherwise?: number,
  ): Column {
    const [first, second = first] = typeof names === "string" ? [names] : names
    for (let s = 0; s < this.segments.length; s++) {
      const segment = this.segments[s]!
      const name = segment[first!] === undefined ? second! : first!
      const value = segment[name] ?? otherwise
      if (typeof value === "object") this.#copy(column, s, name, value)
      else if (typeof value === "number" && value - value === 0)
        column.fill(value, this.offsets[s], this.offsets[s + 1])
      else if (name === "advantage")
        throw nonFinite(`${this.nameOf(s)}.advantage is ${value}; it must be a finite number for a policy loss`)
      else throw this.#wrongLength(s, name)
    }
    return column
  }

  #copy(column: Numbers, s: number, name: ColumnName, values: Float32Array): void {
    const [start, end] = [this.offsets[s]!, this.offsets[s + 1]!]
    if (!isFloat32Array(values) || values.length !== end - start) throw this.#wrongLength(s, name)
    let sum = 0
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!
      column[start + i] = value
      sum += value - value // stays 0; NaN once a value is not finite
    }
    if (sum !== 0) throw nonFinite(`${this.nameOf(s)}.${name} contains a number that is not finite`)
  }

  #wrongLength(s: number, name: ColumnName): GigpoError {
    const tokens = this.offsets[s + 1]! - this.offsets[s]!
    return bad(
      `${this.nameOf(s)}: ${name} must be a Float32Array with one number for each of the ${tokens} sampled tokens`,
    )
  }

  /** Returns the name of a segment for messages. */
  nameOf(segment: number): string {
    const row = this.segmentSequences[segment]!
    return nameOf(this.sequences, row, segment - this.segmentSequences.indexOf(row))
  }
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}

function nonFinite(what: string): GigpoError {
  return new GigpoError("NON_FINITE", `${what}.`)
}
