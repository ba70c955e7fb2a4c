import type { RowStatistics, Unit } from "../engine/engine.ts"
import type { Row, Span } from "../engine/rows.ts"
import { shares } from "../engine/shares.ts"
import { GigpoError } from "../errors.ts"
import { joined } from "../joined.ts"
import type { Moment } from "../options/schedule.ts"
import type { Random } from "../random.ts"
import { SpanTable } from "./span-table.ts"
import type { LossInput, LossNeed, TeacherTop } from "./token-loss.ts"

export interface LossInputOptions {
  readonly moment: Moment
  /** Keyed by seed, iteration and optimizer batch. */
  readonly random: Random
  /** What the loss needs. */
  readonly needs?: readonly LossNeed[] | undefined
  /** Of how many of a teacher's likeliest tokens it reads. Default 0. */
  readonly teacherTop?: number | undefined
  /** What counts as a sequence. Default "span". */
  readonly unit?: Unit | undefined
  /**
   * An expert said what is in the rows: no log-probabilities were recorded, and nobody need give it credit. Advantages are then 1 where
   * there are none, the old log-probabilities those of now. Default false.
   */
  readonly imitation?: boolean | undefined
}

/**
 * The columns that a loss reads, from one optimizer batch and what the engine says of its rows. The columns are new; the rows are
 * not kept.
 *
 * @throws GigpoError `BAD_ARGUMENT` where a row lacks what the loss needs or an array has another length, `NON_FINITE` for a number
 * that is not finite, with the row.
 */
export function lossInput(
  rows: readonly Row[],
  statistics: readonly RowStatistics[],
  { moment, random, needs = [], teacherTop = 0, unit = "span", imitation = false }: LossInputOptions,
): LossInput {
  if (statistics.length !== rows.length)
    throw new GigpoError("BAD_ARGUMENT", `${rows.length} rows have statistics of ${statistics.length}; give one each.`)
  const table = new SpanTable(rows)
  const logProbs = table.ofRows((row) => statistics[row]!.logProbs, "logProbs of the policy")
  const spanOffsets = table.offsets
  const rowOffsets = table.rowOffsets
  const offsets = unit === "row" ? rowOffsets : spanOffsets
  const has = (name: keyof Span) => table.spans.some((span) => span[name] !== undefined)
  const ids = (name: "step" | "episode" | "task") => Int32Array.from(table.spans, (span) => span[name] ?? -1)
  // Where every span has them the KL is reported, even if its weight is 0.
  const withReference =
    needs.includes("reference") || (table.spans.length > 0 && table.spans.every((span) => span.referenceLogProbs))

  return {
    tokens: table.tokens,
    offsets,
    spanOffsets,
    rowOffsets,
    logProbs,
    oldLogProbs: imitation
      ? logProbs
      : needs.includes("old")
        ? table.ofSpans((span) => span.oldLogProbs, "oldLogProbs")
        : table.ofSpans((span) => span.oldLogProbs ?? span.logProbs, "logProbs"),
    ...(withReference && { referenceLogProbs: table.ofSpans((span) => span.referenceLogProbs, "referenceLogProbs") }),
    ...(needs.includes("entropy") && {
      entropies: table.ofRows((row) => statistics[row]!.entropies, "entropies of the policy"),
    }),
    ...(needs.includes("hellinger") && {
      hellingers: table.ofRows((row) => statistics[row]!.hellingers, "Hellinger distances of the policy"),
    }),
    ...(needs.includes("teacher") && {
      teacherLogProbs: table.ofSpans((span) => span.teacherLogProbs, "teacherLogProbs"),
    }),
    ...(teacherTop > 0 && { teacherTop: topOf(table, statistics, teacherTop) }),
    advantages: table.ofSpans((span) => span.advantage ?? (imitation ? 1 : undefined), "advantage"),
    ...(has("weights") && { weights: table.ofSpans((span) => span.weights ?? 1, "weights") }),
    shares: shares("token-mean", offsets),
    ...(has("offPolicy") && { offPolicy: Uint8Array.from(table.spans, ({ offPolicy }) => (offPolicy ? 1 : 0)) }),
    ...(has("clipScale") && { clipScale: table.clipScales() }),
    steps: ids("step"),
    episodes: ids("episode"),
    tasks: ids("task"),
    moment,
    random,
  }
}

/** What the teacher finds likeliest, and what the policy says of it: [tokens × count]. */
function topOf(table: SpanTable, statistics: readonly RowStatistics[], count: number): TeacherTop {
  const policy = joined(
    Float32Array,
    statistics.map(({ top }) => top?.logProbs ?? new Float32Array(0)),
  )
  if (policy.length !== table.tokens * count)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `There are ${policy.length} log-probabilities of the policy for the ${count} likeliest tokens of the teacher at ${table.tokens} places; ` +
        "give one each.",
    )
  return { count, teacher: table.ofPlaces((span) => span.teacherTop?.logProbs, count, "teacherTop"), policy }
}
