import { isFloat32Array } from "node:util/types"
import { GigpoError } from "../util/errors.ts"
import type { Pace } from "../util/pace.ts"
import { Layout, nameOf } from "./layout.ts"
import type { Segment, Sequence } from "./rows.ts"

/** Columns over sampled tokens that spans may hold. */
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
 * Sampled tokens of all rows as one table: spans one after the other, those of a row together. Losses and engines read their columns
 * from it. The table is a copy of the rows' structure; the spans' arrays are read when a column is made.
 */
export class TokenTable {
  readonly rows: readonly Sequence[]
  readonly spans: readonly Segment[]
  /** Row of each span, [spans]. */
  readonly spanRows: Int32Array
  /** Span s holds tokens offsets[s] … offsets[s + 1] - 1, [spans + 1]. */
  readonly offsets: Int32Array
  /** The same of rows, [rows + 1]. */
  readonly rowOffsets: Int32Array
  /** Number of tokens of all rows, sampled or not. */
  readonly length: number

  /** @throws GigpoError `BAD_ARGUMENT` for a row whose tokens or spans are invalid. */
  static of(rows: readonly Sequence[]): TokenTable {
    const layout = new Layout(rows)
    for (let row = 0; row < rows.length; row++) layout.add(row)
    return new TokenTable(layout)
  }

  /** Table of many rows, made while the event loop turns. */
  static async paced(rows: readonly Sequence[], pace: Pace): Promise<TokenTable> {
    const layout = new Layout(rows)
    for (let row = 0; row < rows.length; row++) {
      if (pace.due()) await pace.rest()
      layout.add(row)
    }
    return new TokenTable(layout)
  }

  private constructor({ rows, spans, spanRows, ends, rowEnds, length }: Layout) {
    this.rows = rows
    this.spans = spans
    this.spanRows = new Int32Array(spanRows)
    this.offsets = new Int32Array(ends)
    this.rowOffsets = new Int32Array(rowEnds)
    this.length = length
  }

  /** Number of sampled tokens. */
  get tokens(): number {
    return this.offsets.at(-1)!
  }

  has(name: keyof Segment): boolean {
    return this.spans.some((span) => span[name] !== undefined)
  }

  everyHas(name: keyof Segment): boolean {
    return this.spans.length > 0 && this.spans.every((span) => span[name] !== undefined)
  }

  /**
   * A column of one number a sampled token, from the first of these names that a span has: an array, or one number for the whole span.
   *
   * @param otherwise value of spans without any of them; by default they are refused
   * @throws GigpoError `BAD_ARGUMENT` for an array of another length, `NON_FINITE` for a number that is not finite
   */
  column(names: ColumnName | readonly [ColumnName, ColumnName], otherwise?: number): Float32Array {
    return this.fill(new Float32Array(this.tokens), names, otherwise)
  }

  /** The column in numbers of another type. */
  fill<Column extends Numbers>(
    column: Column,
    names: ColumnName | readonly [ColumnName, ColumnName],
    otherwise?: number,
  ): Column {
    const [first, second = first] = typeof names === "string" ? [names] : names
    for (let s = 0; s < this.spans.length; s++) {
      const span = this.spans[s]!
      const name = span[first!] === undefined ? second! : first!
      const value = span[name] ?? otherwise
      if (typeof value === "object") this.#copy(column, s, name, value)
      else if (typeof value === "number" && value - value === 0)
        column.fill(value, this.offsets[s], this.offsets[s + 1])
      else if (name === "advantage")
        throw nonFinite(`${this.nameOf(s)}.advantage is ${value}; a policy loss needs a finite number`)
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
      sum += value - value // 0, but NaN where one is not finite
    }
    if (sum !== 0) throw nonFinite(`${this.nameOf(s)}.${name} holds a number that is not finite`)
  }

  #wrongLength(s: number, name: ColumnName): GigpoError {
    const tokens = this.offsets[s + 1]! - this.offsets[s]!
    return bad(
      `${this.nameOf(s)}: ${name} must hold one number for each of the ${tokens} sampled tokens, as a Float32Array`,
    )
  }

  /** Name of a span for messages: its row, and its number where the row has several. */
  nameOf(span: number): string {
    const row = this.spanRows[span]!
    return nameOf(this.rows, row, span - this.spanRows.indexOf(row))
  }
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}

function nonFinite(what: string): GigpoError {
  return new GigpoError("NON_FINITE", `${what}.`)
}
