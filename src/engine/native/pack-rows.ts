import { isFloat32Array, isInt32Array } from "node:util/types"
import { GigpoError } from "../../errors.ts"
import type { NativeBatch, NativeGrammar } from "../../native.ts"
import { Pace } from "../../pace.ts"
import { type Row, type Span, sampledTokens } from "../rows.ts"
import { Constraint } from "./constraint.ts"

// Rows as the native engine takes them: fresh arrays, which it may read at leisure. Everything is checked here, with sentences, but
// the tokens themselves: the engine looks at all of them in the time that a few take here. A million rows take seconds: the event
// loop turns meanwhile.

/** What a batch is computed for. */
export interface BatchNeeds {
  /** One for the whole batch; absent where no distribution is computed. */
  readonly temperature?: number
  readonly advantages?: boolean
  readonly oldLogProbs?: boolean
  /** "known": where every span has them. */
  readonly referenceLogProbs?: boolean | "known"
  /** What it is computed for knows neither weights nor a clipScale; ignored, they would give another loss than was asked for. */
  readonly unweighted?: boolean
  readonly returns?: boolean
  /** A critic's, as it foretold before. */
  readonly values?: boolean
}

export async function packRows(
  rows: readonly Row[],
  needs: BatchNeeds,
  signal?: AbortSignal | undefined,
): Promise<NativeBatch> {
  const pace = new Pace(signal)
  const counted = await countRows(rows, needs, pace)
  const column = (needed: boolean | undefined) => (needed ? new Float32Array(counted.sampled) : undefined)
  const tokens = new Int32Array(counted.tokens)
  const rowOffsets = new Int32Array(rows.length + 1)
  const [spanRows, spanBegins, spanCounts] = [0, 1, 2].map(() => new Int32Array(counted.spans)) as Columns
  const advantages = column(needs.advantages)
  const oldLogProbs = column(needs.oldLogProbs)
  const referenceLogProbs = column(needs.referenceLogProbs === "known" ? counted.referenced : needs.referenceLogProbs)
  const returns = column(needs.returns)
  const oldValues = column(needs.values)
  const constraints: (NativeGrammar | undefined)[] | undefined =
    needs.temperature !== undefined && counted.constrained ? [] : undefined
  let [index, sampled] = [0, 0]
  for (let row = 0; row < rows.length; row++) {
    if (pace.due()) await pace.rest()
    const { tokens: own, spans } = rows[row]!
    if (own.length > tokens.length - rowOffsets[row]!) throw bad(`rows[${row}]: it grew while it was read`)
    tokens.set(own, rowOffsets[row]!)
    rowOffsets[row + 1] = rowOffsets[row]! + own.length
    for (let i = 0; i < spans.length; i++, index++) {
      const span = spans[i]!
      spanRows[index] = row
      spanBegins[index] = span.start
      spanCounts[index] = span.length
      if (advantages) fillAdvantages(advantages, sampled, rows, row, span)
      if (oldLogProbs) {
        const name = span.oldLogProbs ? "oldLogProbs" : "logProbs"
        copyColumn(oldLogProbs, sampled, rows, row, span, name, span[name])
      }
      if (referenceLogProbs)
        copyColumn(referenceLogProbs, sampled, rows, row, span, "referenceLogProbs", span.referenceLogProbs)
      constraints?.push(grammarOf(span.constraint, () => nameOf(rows, row, span)))
      if (returns) copyColumn(returns, sampled, rows, row, span, "returns", span.returns)
      if (oldValues) copyColumn(oldValues, sampled, rows, row, span, "values", span.values)
      sampled += span.length
    }
  }
  return {
    tokens,
    rowOffsets,
    spanRows,
    spanBegins,
    spanCounts,
    ...(advantages && { advantages }),
    ...(oldLogProbs && { oldLogProbs }),
    ...(referenceLogProbs && { referenceLogProbs }),
    ...(returns && { returns }),
    ...(oldValues && { oldValues }),
    ...(constraints && { constraints }),
  }
}

type Columns = [Int32Array, Int32Array, Int32Array]

/** Sizes of a batch, once every row and span has been looked at. */
async function countRows(rows: readonly Row[], { temperature, unweighted }: BatchNeeds, pace: Pace) {
  let [tokens, spans, sampled, referenced, constrained] = [0, 0, 0, true, false]
  for (let index = 0; index < rows.length; index++) {
    if (pace.due()) await pace.rest()
    const row = rows[index]!
    if (!isInt32Array(row.tokens)) throw bad(`rows[${index}]: tokens must be an Int32Array`)
    if (row.attachments && row.attachments.length > 0)
      throw bad(`rows[${index}]: it has attachments, which this engine cannot read`)
    tokens += row.tokens.length
    spans += row.spans.length
    let end = 0
    for (let i = 0; i < row.spans.length; i++) {
      const span = row.spans[i]!
      const wrong = faultOf(span, end, row.tokens.length, temperature)
      if (wrong) throw bad(`${nameOf(rows, index, span)}: ${wrong}`)
      if (unweighted) refuseWeights(span, index)
      if (span.referenceLogProbs === undefined) referenced = false
      if (span.constraint !== undefined) constrained = true
      end = span.start + span.length
      sampled += span.length
    }
  }
  if (tokens >= 2 ** 31) throw bad(`the rows have ${tokens} tokens; give at most 2³¹ - 1 at once`)
  return { tokens, spans, sampled, referenced, constrained }
}

function grammarOf(constraint: unknown, name: () => string): NativeGrammar | undefined {
  if (constraint === undefined) return undefined
  if (constraint instanceof Constraint) return constraint.native
  throw bad(`${name()}: its constraint is none that this engine reads; give a Constraint`)
}

function refuseWeights({ weights, clipScale = 1 }: Span, row: number): void {
  if (weights === undefined && clipScale === 1) return
  throw bad(`rows[${row}] has ${weights ? "weights" : "a clipScale"}; evaluate the loss and give it as a "linear" one`)
}

/** What is wrong with a span, after one that ends at `end`. */
function faultOf(span: Span, end: number, tokens: number, temperature: number | undefined): string | undefined {
  const { start, length } = span
  if (!Number.isInteger(start) || !Number.isInteger(length))
    return `start is ${start} and length ${length}; they must be whole numbers`
  if (start < 1) return "the prompt is empty; the first reply token needs something to follow"
  if (length < 1) return "the reply is empty; leave such rows out"
  if (start < end) return `it starts at ${start}, but the span before it ends at ${end}; give them in order and apart`
  if (start + length > tokens) return `it ends at ${start + length}, but its row has ${tokens} tokens`
  if (temperature === undefined) return undefined // a critic does not ask how they were drawn
  if (span.temperature !== undefined && span.temperature !== temperature) {
    return (
      `it was sampled at temperature ${span.temperature}, but this batch is computed at ${temperature}; give rows of one ` +
      "temperature at a time"
    )
  }
  return undefined
}

function fillAdvantages(to: Float32Array, at: number, rows: readonly Row[], row: number, span: Span): void {
  const { advantage, length } = span
  if (typeof advantage === "object") copyColumn(to, at, rows, row, span, "advantage", advantage)
  else if (Number.isFinite(advantage)) to.fill(advantage as number, at, at + length)
  else throw notFinite(`${nameOf(rows, row, span)}.advantage is ${advantage}; a policy loss needs a finite number`)
}

function copyColumn(
  to: Float32Array,
  at: number,
  rows: readonly Row[],
  row: number,
  span: Span,
  name: string,
  values: Float32Array | undefined,
): void {
  if (!isFloat32Array(values) || values.length !== span.length) {
    const where = nameOf(rows, row, span)
    throw bad(`${where}: ${name} must hold one number for each of the ${span.length} reply tokens, as a Float32Array`)
  }
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!
    // Infinity - Infinity is NaN, too.
    if (value - value !== 0) throw notFinite(`${nameOf(rows, row, span)}.${name} holds a number that is not finite`)
    to[at + i] = value
  }
}

/** The row, and which of its spans where it has several. */
function nameOf(rows: readonly Row[], row: number, span: Span): string {
  const { spans } = rows[row]!
  return spans.length === 1 ? `rows[${row}]` : `rows[${row}].spans[${spans.indexOf(span)}]`
}

/** One array a row, with so many numbers for each token that was sampled of it. */
export async function splitByRow<Numbers extends Float32Array | Int32Array>(
  flat: Numbers,
  rows: readonly Row[],
  count = 1,
): Promise<Numbers[]> {
  const pace = new Pace()
  const parts: Numbers[] = []
  let at = 0
  for (const row of rows) {
    if (pace.due()) await pace.rest()
    const end = at + sampledTokens([row]) * count
    parts.push(flat.slice(at, end) as Numbers)
    at = end
  }
  return parts
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}

function notFinite(what: string): GigpoError {
  return new GigpoError("NON_FINITE", `${what}.`)
}
