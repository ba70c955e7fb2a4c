import type { Row, Span } from "../engine/rows.ts"
import { GigpoError } from "../errors.ts"
import { locate } from "./locate.ts"

/** All spans of all rows in order, and columns made of them. */
export class SpanTable {
  readonly spans: readonly Span[]
  /** [spans + 1] */
  readonly offsets: Int32Array
  /** [rows + 1] */
  readonly rowOffsets: Int32Array
  readonly tokens: number
  readonly #rows: readonly Row[]

  constructor(rows: readonly Row[]) {
    this.#rows = rows
    this.spans = rows.flatMap((row) => row.spans)
    this.offsets = new Int32Array(this.spans.length + 1)
    this.rowOffsets = new Int32Array(rows.length + 1)
    let [at, span] = [0, 0]
    for (let row = 0; row < rows.length; row++) {
      for (const { length } of rows[row]!.spans) {
        if (!(Number.isInteger(length) && length >= 1))
          throw this.#fail("BAD_ARGUMENT", span, "the reply is empty; leave such spans out")
        at += length
        this.offsets[++span] = at
      }
      this.rowOffsets[row + 1] = at
    }
    this.tokens = at
  }

  /** One number a token, from an array or one number of each span. */
  ofSpans(values: (span: Span) => Float32Array | number | undefined, name: string): Float32Array {
    const column = new Float32Array(this.tokens)
    for (let s = 0; s < this.spans.length; s++) {
      const [start, end] = [this.offsets[s]!, this.offsets[s + 1]!]
      const value = values(this.spans[s]!)
      if (typeof value === "number") column.fill(value, start, end)
      else if (value?.length === end - start) column.set(value, start)
      else if (name === "advantage" && value === undefined)
        throw this.#fail("NON_FINITE", s, "advantage is undefined; a policy loss needs a finite number")
      else
        throw this.#fail(
          "BAD_ARGUMENT",
          s,
          `${name} must hold one number for each of the ${end - start} sampled tokens`,
        )
    }
    return this.#finite(column, name)
  }

  /** One number a token, from an array of each row. */
  ofRows(values: (row: number) => Float32Array | undefined, name: string): Float32Array {
    const column = new Float32Array(this.tokens)
    for (let row = 0; row < this.#rows.length; row++) {
      const [start, end] = [this.rowOffsets[row]!, this.rowOffsets[row + 1]!]
      const value = values(row)
      if (value?.length !== end - start)
        throw new GigpoError(
          "BAD_ARGUMENT",
          `rows[${row}]: there are ${value?.length ?? "no"} ${name} for ${end - start} sampled tokens; give one each.`,
        )
      column.set(value, start)
    }
    return this.#finite(column, name)
  }

  /** So many numbers a token, from an array of each span: [tokens × count]. */
  ofPlaces(values: (span: Span) => Float32Array | undefined, count: number, name: string): Float32Array {
    const column = new Float32Array(this.tokens * count)
    for (const [s, span] of this.spans.entries()) {
      const value = values(span)
      if (value?.length !== span.length * count)
        throw this.#fail(
          "BAD_ARGUMENT",
          s,
          `${name} must hold ${count} numbers for each of the ${span.length} sampled tokens`,
        )
      column.set(value, this.offsets[s]! * count)
    }
    return this.#finite(column, name, count)
  }

  /** One number a span. */
  clipScales(): Float64Array {
    const scales = Float64Array.from(this.spans, (span) => span.clipScale ?? 1)
    const wrong = scales.findIndex((scale) => !(scale >= 0 && Number.isFinite(scale)))
    if (wrong >= 0)
      throw this.#fail("NON_FINITE", wrong, `clipScale is ${scales[wrong]}; give a finite number of at least 0`)
    return scales
  }

  #finite(column: Float32Array, name: string, count = 1): Float32Array {
    let sum = 0
    for (let t = 0; t < column.length; t++) sum += column[t]! - column[t]! // 0, but NaN where one is not finite
    if (sum === 0) return column
    const wrong = column.findIndex((value) => !Number.isFinite(value))
    const [span] = locate(Math.floor(wrong / count), this.offsets)
    throw this.#fail("NON_FINITE", span, `${name} holds a number that is not finite`)
  }

  #fail(code: "BAD_ARGUMENT" | "NON_FINITE", span: number, what: string): GigpoError {
    let row = 0
    let first = 0
    while (first + this.#rows[row]!.spans.length <= span) first += this.#rows[row++]!.spans.length
    const where = this.#rows[row]!.spans.length === 1 ? `rows[${row}]` : `rows[${row}].spans[${span - first}]`
    return new GigpoError(code, `${where}: ${what}.`)
  }
}
