import type { NativeBatch, NativeGrammar } from "../../native/native.ts"
import { GigpoError } from "../../util/errors.ts"
import { Pace } from "../../util/pace.ts"
import type { Sequence } from "../sequence.ts"
import { TokenTable } from "../token-table.ts"
import { Constraint } from "./constraint.ts"
import { imagesOfBatch } from "./images.ts"

// Converts sequences to the form of the native engine: new arrays that the engine may read at any time. Everything is checked here
// except token ids, which the engine checks much faster. A million sequences take seconds, so the event loop is released in between.

/** Inputs that a batch needs. */
export interface BatchNeeds {
  /** Temperature of the whole batch; absent if no distribution is computed. */
  readonly temperature?: number
  readonly advantages?: boolean
  readonly oldLogProbs?: boolean
  /** "known": only if all segments have them. */
  readonly referenceLogProbs?: boolean | "known"
  /** Whether weights and a clipScale are rejected, because the loss does not support them. */
  readonly unweighted?: boolean
  readonly returns?: boolean
  /** Previous predictions of the critic. */
  readonly values?: boolean
}

/** Returns the batch for the engine. Throws `BAD_ARGUMENT`, `NON_FINITE` and the reason of an abort. */
export async function packRows(
  rows: readonly Sequence[],
  needs: BatchNeeds,
  signal?: AbortSignal | undefined,
): Promise<NativeBatch> {
  const pace = new Pace(signal)
  const table = await TokenTable.paced(rows, pace)
  const constraints = await checkSegments(table, needs, pace)
  const batch: { -readonly [Name in keyof NativeBatch]: NativeBatch[Name] } = {
    ...(await copyTokens(table, pace)),
    spanRows: table.segmentSequences,
    spanBegins: table.segmentSequences.map((_, s) => table.segments[s]!.start),
    spanCounts: table.segmentSequences.map((_, s) => table.segments[s]!.length),
    ...(constraints && { constraints }),
    ...imagesOfBatch(rows),
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
  { sequences, length }: TokenTable,
  pace: Pace,
): Promise<Pick<NativeBatch, "tokens" | "rowOffsets">> {
  if (length >= 2 ** 31) throw bad(`the sequences have ${length} tokens; give at most 2³¹ - 1 per call`)
  const tokens = new Int32Array(length)
  const rowOffsets = new Int32Array(sequences.length + 1)
  for (let row = 0; row < sequences.length; row++) {
    if (pace.due()) await pace.rest()
    const own = sequences[row]!.tokens
    const start = rowOffsets[row]!
    if (own.length > length - start)
      throw bad(`sequences[${row}]: its tokens changed during the call; copy arrays before changing them`)
    tokens.set(own, start)
    rowOffsets[row + 1] = start + own.length
  }
  return { tokens, rowOffsets }
}

/** Checks temperature and weights of the segments. Returns their constraints, if there are any and a distribution is computed. */
async function checkSegments(
  table: TokenTable,
  { temperature, unweighted }: BatchNeeds,
  pace: Pace,
): Promise<(NativeGrammar | undefined)[] | undefined> {
  for (let s = 0; s < table.segments.length; s++) {
    if (pace.due()) await pace.rest()
    const { weights, clipScale = 1, temperature: own = temperature } = table.segments[s]!
    // A critic computes no distribution, so it does not need the sampling temperature.
    if (temperature !== undefined && own !== temperature)
      throw bad(
        `${table.nameOf(s)}: it was sampled at temperature ${own}, but this batch is computed at ${temperature}; pass sequences of each ` +
          "temperature in a separate call",
      )
    if (unweighted && (weights !== undefined || clipScale !== 1))
      throw bad(
        `sequences[${table.segmentSequences[s]}] has ${weights ? "weights" : "a clipScale"}, which this loss does not support; evaluate the loss ` +
          'and pass its gradient as a "linear" loss',
      )
  }
  if (temperature === undefined || !table.has("constraint")) return undefined
  return table.segments.map(({ constraint }, s) => grammarOf(constraint, () => table.nameOf(s)))
}

function grammarOf(constraint: unknown, name: () => string): NativeGrammar | undefined {
  if (constraint === undefined) return undefined
  if (constraint instanceof Constraint) return constraint.native
  throw bad(`${name()}: its constraint is not supported by the native engine; pass a Constraint`)
}

/** Returns the number of sampled tokens of a batch. */
export function placesOf({ spanCounts }: NativeBatch): number {
  return spanCounts.reduce((sum, count) => sum + count, 0)
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
