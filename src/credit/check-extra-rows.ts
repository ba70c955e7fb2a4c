import { isFloat32Array, isInt32Array } from "node:util/types"
import type { Segment, Sequence } from "../engine/sequence.ts"
import type { Refusals } from "../options/outcome.ts"
import type { Replay } from "./estimator.ts"

/** Checks extra sequences and their numbers. They are not steps of the batch, so no other check covers them. */
export function checkExtraRows(rows: unknown, refusals: Refusals, name = "extraSequences"): void {
  if (rows === undefined) return
  if (!Array.isArray(rows)) throw refusals.bad(`${name} that are not a list of sequences`)
  for (const [index, row] of rows.entries()) checkRow(row, `${name}[${index}]`, refusals)
}

/** Checks sequences with updates of their own, and the weight of their loss. The loss is checked where it is composed. */
export function checkReplay(replay: unknown, refusals: Refusals): void {
  if (replay === undefined) return
  const { sequences, weight } = (replay ?? {}) as Partial<Replay>
  if (!Array.isArray(sequences)) throw refusals.bad("a replay that is not { sequences, loss, weight }")
  checkExtraRows(sequences, refusals, "replay.sequences")
  if (typeof weight !== "number" || !(weight >= 0 && Number.isFinite(weight)))
    throw refusals.bad(`a replay with the weight ${String(weight)}; give a number of at least 0`)
}

function checkRow(row: Partial<Sequence> | undefined | null, where: string, refusals: Refusals): void {
  const { tokens, segments } = row ?? {}
  if (!isInt32Array(tokens) || !Array.isArray(segments))
    throw refusals.bad(`${where} that is not a sequence { tokens: Int32Array, segments }`)
  if (segments.length === 0) throw refusals.bad(`${where} without a segment; mark the sampled tokens by segments`)
  let end = 1 // the first token of a row is never sampled
  for (const [index, segment] of segments.entries()) {
    const place = `${where}.spans[${index}]`
    const { start, length } = (segment ?? {}) as Partial<Segment>
    if (!isWhole(start) || !isWhole(length) || length < 1)
      throw refusals.bad(`${place} without a start and a length that are integers, the length at least 1`)
    if (start < end || start + length > tokens.length)
      throw refusals.bad(
        `${place} from token ${start} to ${start + length - 1}; spans must be in order and must not overlap, in tokens ` +
          `1 to ${tokens.length - 1}`,
      )
    checkSegment(segment, place, refusals)
    end = start + length
  }
}

/** Checks a span's advantage and the log-probabilities for its ratio. */
function checkSegment(
  { length, advantage, logProbs, oldLogProbs, offPolicy }: Segment,
  place: string,
  { bad, nonFinite }: Refusals,
): void {
  if (typeof advantage !== "number" && !isColumn(advantage, length))
    throw bad(`${place} without an advantage, one number or a Float32Array of its ${length} tokens`)
  if (logProbs === undefined && oldLogProbs === undefined)
    throw bad(`${place} without logProbs, the log-probabilities at the time of sampling`)
  if (offPolicy !== undefined && typeof offPolicy !== "boolean")
    throw bad(`${place} with an offPolicy of ${String(offPolicy)}; it must be true or false`)
  for (const [name, values] of Object.entries({ advantage, logProbs, oldLogProbs })) {
    if (values === undefined) continue
    if (typeof values !== "number" && !isColumn(values, length))
      throw bad(`${name} of ${place} that are not a Float32Array of its ${length} tokens`)
    const wrong = (typeof values === "number" ? [values] : [...values]).find((value) => !Number.isFinite(value))
    if (wrong !== undefined) throw nonFinite(`${name} of ${wrong} in ${place}; give finite numbers`)
  }
}

function isColumn(values: unknown, length: number): boolean {
  return isFloat32Array(values) && values.length === length
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value)
}
