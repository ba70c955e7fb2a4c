import type { SequenceUnit, TokenStatistics } from "../engine/engine.ts"
import type { Sequence } from "../engine/sequence.ts"
import { shares } from "../engine/shares.ts"
import { TokenTable } from "../engine/token-table.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import { GigpoError } from "../util/errors.ts"
import type { Random } from "../util/random.ts"
import { locate } from "./locate.ts"
import type { LossColumn, LossInput, TeacherTop } from "./token-loss.ts"

/** Options of `lossInput`. */
export interface LossInputOptions {
  readonly progress: TrainingProgress
  /** Generator, keyed by seed, iteration and optimizer batch. */
  readonly random: Random
  /** Columns that the loss needs. */
  readonly needs?: readonly LossColumn[] | undefined
  /** Number of the teacher's most likely tokens that the loss reads. Default 0. */
  readonly teacherTop?: number | undefined
  /** Unit that counts as a sequence. Default "completion". */
  readonly unit?: SequenceUnit | undefined
  /**
   * Whether the tokens are those of an expert, without recorded log-probabilities and advantages. Missing advantages are then 1, and the
   * old log-probabilities are the current ones. Default false.
   */
  readonly imitation?: boolean | undefined
}

/**
 * Returns the columns that a loss reads, from the sequences of one optimizer batch and the engine's token statistics. Columns are copies;
 * the sequences are not kept.
 *
 * @throws GigpoError `BAD_ARGUMENT` for a sequence without a column that the loss needs or with a column of wrong length, `NON_FINITE`
 * for a number that is not finite. Messages name the sequence.
 */
export function lossInput(
  rows: readonly Sequence[],
  statistics: TokenStatistics,
  { progress, random, needs = [], teacherTop = 0, unit = "completion", imitation = false }: LossInputOptions,
): LossInput {
  const table = TokenTable.of(rows)
  const { offsets: segmentOffsets, sequenceOffsets } = table
  const logProbs = checked(statistics.logProbs, table, "logProbs")
  const offsets = unit === "conversation" ? sequenceOffsets : segmentOffsets
  const ids = (name: "step" | "episode" | "task") => Int32Array.from(table.segments, (segment) => segment[name] ?? -1)
  const known = needs.includes("old") ? "oldLogProbs" : (["oldLogProbs", "logProbs"] as const)
  // The KL is also reported at weight 0, if all segments have reference log-probabilities.
  const withReference = needs.includes("reference") || table.everyHas("referenceLogProbs")

  return {
    tokens: table.tokens,
    offsets,
    segmentOffsets,
    sequenceOffsets,
    logProbs,
    oldLogProbs: imitation ? logProbs : table.column(known),
    ...(withReference && { referenceLogProbs: table.column("referenceLogProbs") }),
    ...(needs.includes("entropy") && { entropies: checked(statistics.entropies, table, "entropies") }),
    ...(needs.includes("hellinger") && { hellingers: checked(statistics.hellingers, table, "Hellinger distances") }),
    ...(needs.includes("teacher") && { teacherLogProbs: table.column("teacherLogProbs") }),
    ...(teacherTop > 0 && { teacherTop: topOf(table, statistics, teacherTop) }),
    advantages: table.column("advantage", imitation ? 1 : undefined),
    ...(table.has("weights") && { weights: table.column("weights", 1) }),
    shares: shares("token-mean", offsets),
    ...(table.has("offPolicy") && {
      offPolicy: Uint8Array.from(table.segments, ({ offPolicy }) => (offPolicy ? 1 : 0)),
    }),
    ...(table.has("clipScale") && { clipScale: clipScales(table) }),
    steps: ids("step"),
    episodes: ids("episode"),
    tasks: ids("task"),
    progress,
    random,
  }
}

/** Column of an engine, [sampled tokens × count], after checks of its length and numbers. */
function checked(column: Float32Array | undefined, table: TokenTable, name: string, count = 1): Float32Array {
  const wanted = table.tokens * count
  if (column?.length !== wanted)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `There are ${column?.length ?? "no"} ${name} of the policy for ${table.tokens} sampled tokens; give ${count > 1 ? count : "one"} per token.`,
    )
  const wrong = column.findIndex((value) => value - value !== 0)
  if (wrong < 0) return column
  const [segment] = locate(Math.floor(wrong / count), table.offsets)
  throw new GigpoError(
    "NON_FINITE",
    `${table.nameOf(segment)}: the ${name} of the policy hold a number that is not finite.`,
  )
}

/** Log-probabilities of the teacher's most likely tokens, by teacher and policy: [tokens × count] each. */
function topOf(table: TokenTable, { top }: TokenStatistics, count: number): TeacherTop {
  const policy = checked(top?.logProbs, table, "log-probabilities of the teacher's most likely tokens", count)
  const teacher = new Float32Array(table.tokens * count)
  for (const [s, { teacherTop, length }] of table.segments.entries()) {
    const values = teacherTop?.logProbs
    if (values?.length !== length * count)
      throw new GigpoError(
        "BAD_ARGUMENT",
        `${table.nameOf(s)}: teacherTop must hold ${count} numbers for each of the ${length} sampled tokens.`,
      )
    if (!values.every(Number.isFinite))
      throw new GigpoError("NON_FINITE", `${table.nameOf(s)}.teacherTop holds a number that is not finite.`)
    teacher.set(values, table.offsets[s]! * count)
  }
  return { count, teacher, policy }
}

/** Factors of the clip ranges of segments, [segments]. */
function clipScales(table: TokenTable): Float64Array {
  return Float64Array.from(table.segments, ({ clipScale = 1 }, s) => {
    if (clipScale >= 0 && Number.isFinite(clipScale)) return clipScale
    throw new GigpoError(
      "NON_FINITE",
      `${table.nameOf(s)}: clipScale is ${clipScale}; give a finite number of at least 0.`,
    )
  })
}
