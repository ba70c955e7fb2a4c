import { isInt32Array } from "node:util/types"
import { GigpoError } from "../util/errors.ts"
import type { Segment, Sequence } from "./rows.ts"

/** Structure of rows, taken row by row. */
export class Layout {
  readonly rows: readonly Sequence[]
  readonly spans: Segment[] = []
  readonly spanRows: number[] = []
  readonly ends: number[] = [0]
  readonly rowEnds: number[] = [0]
  length = 0
  #tokens = 0

  constructor(rows: readonly Sequence[]) {
    this.rows = rows
  }

  add(index: number): void {
    const { tokens, spans } = this.rows[index]!
    if (!isInt32Array(tokens)) throw bad(`rows[${index}]: tokens must be an Int32Array`)
    let end = 0
    for (let i = 0; i < spans.length; i++) {
      const span = spans[i]!
      const wrong = faultOf(span, end, tokens.length)
      if (wrong) throw bad(`${nameOf(this.rows, index, i)}: ${wrong}`)
      end = span.start + span.length
      this.#tokens += span.length
      this.spans.push(span)
      this.spanRows.push(index)
      this.ends.push(this.#tokens)
    }
    this.rowEnds.push(this.#tokens)
    this.length += tokens.length
  }
}

/** What is wrong with a span, after one that ends at `end`. */
function faultOf({ start, length }: Segment, end: number, tokens: number): string | undefined {
  if (!Number.isInteger(start) || !Number.isInteger(length))
    return `start is ${start} and length ${length}; they must be whole numbers`
  if (start < 1) return "the prompt is empty; the first reply token needs something to follow"
  if (length < 1) return "the reply is empty; leave such rows out"
  if (start < end) return `it starts at ${start}, but the span before it ends at ${end}; give them in order and apart`
  return start + length > tokens ? `it ends at ${start + length}, but its row has ${tokens} tokens` : undefined
}

/** Name of a span for messages: its row, and its number where the row has several. */
export function nameOf(rows: readonly Sequence[], row: number, span: number): string {
  return rows[row]!.spans.length === 1 ? `rows[${row}]` : `rows[${row}].spans[${span}]`
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
