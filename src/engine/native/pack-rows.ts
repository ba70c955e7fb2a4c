import type { NativeBatch, NativeGrammar } from "../../native/native.ts"
import { GigpoError } from "../../util/errors.ts"
import { Pace } from "../../util/pace.ts"
import type { Sequence } from "../rows.ts"
import { TokenTable } from "../token-table.ts"
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
  rows: readonly Sequence[],
  needs: BatchNeeds,
  signal?: AbortSignal | undefined,
): Promise<NativeBatch> {
  const pace = new Pace(signal)
  const withAttachments = rows.findIndex(({ attachments }) => attachments && attachments.length > 0)
  if (withAttachments >= 0) throw bad(`rows[${withAttachments}]: it has attachments, which this engine cannot read`)
  const table = await TokenTable.paced(rows, pace)
  const constraints = await checkSpans(table, needs, pace)
  const batch: { -readonly [Name in keyof NativeBatch]: NativeBatch[Name] } = {
    ...(await copyTokens(table, pace)),
    spanRows: table.spanRows,
    spanBegins: table.spanRows.map((_, s) => table.spans[s]!.start),
    spanCounts: table.spanRows.map((_, s) => table.spans[s]!.length),
    ...(constraints && { constraints }),
  }
  const wanted = needs.referenceLogProbs
  if (needs.advantages) batch.advantages = table.column("advantage")
  if (needs.oldLogProbs) batch.oldLogProbs = table.column(["oldLogProbs", "logProbs"])
  if (pace.due()) await pace.rest()
  if (wanted === "known" ? table.everyHas("referenceLogProbs") : wanted)
    batch.referenceLogProbs = table.column("referenceLogProbs")
  if (needs.returns) batch.returns = table.column("returns")
  if (needs.values) batch.oldValues = table.column("values")
  return batch
}

async function copyTokens(
  { rows, length }: TokenTable,
  pace: Pace,
): Promise<Pick<NativeBatch, "tokens" | "rowOffsets">> {
  if (length >= 2 ** 31) throw bad(`the rows have ${length} tokens; give at most 2³¹ - 1 at once`)
  const tokens = new Int32Array(length)
  const rowOffsets = new Int32Array(rows.length + 1)
  for (let row = 0; row < rows.length; row++) {
    if (pace.due()) await pace.rest()
    const own = rows[row]!.tokens
    const start = rowOffsets[row]!
    if (own.length > length - start) throw bad(`rows[${row}]: it grew while it was read`)
    tokens.set(own, start)
    rowOffsets[row + 1] = start + own.length
  }
  return { tokens, rowOffsets }
}

/** Checks how the spans were sampled, and gives their constraints where any has one and a distribution is computed. */
async function checkSpans(
  table: TokenTable,
  { temperature, unweighted }: BatchNeeds,
  pace: Pace,
): Promise<(NativeGrammar | undefined)[] | undefined> {
  for (let s = 0; s < table.spans.length; s++) {
    if (pace.due()) await pace.rest()
    const { weights, clipScale = 1, temperature: own = temperature } = table.spans[s]!
    // A critic does not ask how they were drawn.
    if (temperature !== undefined && own !== temperature)
      throw bad(
        `${table.nameOf(s)}: it was sampled at temperature ${own}, but this batch is computed at ${temperature}; give rows of one ` +
          "temperature at a time",
      )
    if (unweighted && (weights !== undefined || clipScale !== 1))
      throw bad(
        `rows[${table.spanRows[s]}] has ${weights ? "weights" : "a clipScale"}; evaluate the loss and give it as a "linear" one`,
      )
  }
  if (temperature === undefined || !table.has("constraint")) return undefined
  return table.spans.map(({ constraint }, s) => grammarOf(constraint, () => table.nameOf(s)))
}

function grammarOf(constraint: unknown, name: () => string): NativeGrammar | undefined {
  if (constraint === undefined) return undefined
  if (constraint instanceof Constraint) return constraint.native
  throw bad(`${name()}: its constraint is none that this engine reads; give a Constraint`)
}

/** Number of sampled tokens of a batch. */
export function placesOf({ spanCounts }: NativeBatch): number {
  return spanCounts.reduce((sum, count) => sum + count, 0)
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
