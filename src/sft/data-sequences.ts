import type { DataContext, Example, TrainingData } from "../data/data.ts"
import { fitted, TooLong } from "../data/too-long.ts"
import { transcripts } from "../data/transcripts.ts"
import type { Trainable } from "../engine/engine.ts"
import type { Segment, Sequence } from "../engine/rows.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"

export interface DataRowsSetup extends DataContext {
  readonly policy: Pick<Trainable, "maxPositions" | "longestRow">
  readonly data: TrainingData | string
  readonly tooLong: "leave-out" | "cut"
  /** Whether the loss is of preference pairs; undefined where it may be of either. */
  readonly pairs: boolean | undefined
}

/** What somebody brought, as rows whose `task` is their example. Of pairs the advantages say what was chosen (1) and rejected (-1). */
export interface DataRows {
  readonly rows: readonly Sequence[]
  readonly paired: boolean
}

/** @throws GigpoError `BAD_DATA` for what cannot be read, is not what the loss takes, or leaves nothing to learn */
export async function dataRows(setup: DataRowsSetup): Promise<DataRows> {
  const { policy, tooLong, onWarning, signal } = setup
  const data = typeof setup.data === "string" ? transcripts(setup.data) : setup.data
  const most = Math.min(policy.maxPositions, policy.longestRow ?? Number.POSITIVE_INFINITY)
  const pace = new Pace(signal)
  const rows: Sequence[] = []
  const long = new TooLong()
  let [task, paired] = [0, setup.pairs]
  for await (const example of data.examples(setup)) {
    if (pace.due()) await pace.rest()
    signal?.throwIfAborted()
    const isPair = example.rejected !== undefined
    paired ??= isPair
    if (paired !== isPair) throw otherKind(data, example, setup.pairs)
    const fitting = (side: readonly Sequence[]) =>
      fitted(side, most, tooLong, (length) => long.add(example.place, length))
    const [chosen, rejected] = [fitting(example.rows), fitting(example.rejected ?? [])]
    const about = (side: readonly Sequence[], more: Partial<Segment>) => side.map((row) => told(row, { task, ...more }))
    // Of a pair both sides are compared, or neither.
    const isWhole = chosen.length === example.rows.length && rejected.length === example.rejected?.length
    if (!isPair) rows.push(...about(chosen, {}))
    else if (isWhole) rows.push(...about(chosen, { advantage: 1 }), ...about(rejected, { advantage: -1 }))
    task++
  }
  const found = long.describe(data.name, most, tooLong)
  if (rows.length === 0)
    throw new GigpoError(
      "BAD_DATA",
      found ? `${found} Nothing is left to learn.` : `${data.name} has nothing to learn from.`,
    )
  if (found) onWarning(found)
  return { rows, paired: paired ?? false }
}

/** The same row, of whose spans more is known. */
function told(row: Sequence, more: Partial<Segment>): Sequence {
  return { ...row, spans: row.spans.map((span) => ({ ...span, ...more })) }
}

function otherKind({ name }: TrainingData, { place }: Example, pairs: boolean | undefined): GigpoError {
  if (pairs === undefined)
    return new GigpoError("BAD_DATA", `${name}, ${place}: pairs and transcripts stand in one file; give them apart.`)
  return new GigpoError(
    "BAD_DATA",
    pairs
      ? `${name}, ${place}: is no pair, which the loss dpo learns from; give prompt, chosen and rejected.`
      : `${name}, ${place}: is a preference pair, of which the loss cross-entropy would learn both sides; set loss to dpo.`,
  )
}
