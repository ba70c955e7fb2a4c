import { sampledWeights } from "../engine/rows.ts"
import { GigpoError } from "../util/errors.ts"
import { joined } from "../util/joined.ts"
import type { Batch, StepRecord } from "./estimator.ts"
import type { Remembered } from "./replay-memory.ts"

/** What training records of a step beside what estimators read. */
interface SampledRecord extends StepRecord {
  readonly prompt: Int32Array
  readonly reply: Int32Array
  readonly logProbs: Float32Array
  readonly forced?: Uint8Array
  readonly attachments?: unknown
  readonly constraint?: unknown
}

/**
 * The steps that are good, as they may be learned again; those with images or constraints, which no checkpoint could keep, are left out.
 *
 * @param returns R(τ) of each step's episode, [steps]
 * @throws BAD_ARGUMENT where steps have no tokens
 */
export function remember(
  { steps = [], length, statistics }: Batch,
  returns: Float64Array,
  iteration: number,
  isGood: (row: number) => boolean,
): Remembered[] {
  if (steps.length < length || steps.some((step) => !("reply" in step)))
    throw new GigpoError("BAD_ARGUMENT", "spear replays earlier steps; give each step a record with its tokens.")
  return (steps as readonly SampledRecord[]).flatMap((step, row) => {
    const { prompt, reply, logProbs, forced, offPolicy, attachments, constraint } = step
    if (!isGood(row) || attachments !== undefined || constraint !== undefined) return []
    const reference = statistics?.reference?.[row]
    return {
      tokens: joined(Int32Array, [prompt, reply]),
      start: prompt.length,
      logProbs,
      ...(reference && { referenceLogProbs: Float32Array.from(reference) }),
      ...(forced && { weights: sampledWeights(forced) }),
      ...(offPolicy && { offPolicy }),
      outcome: returns[row]!,
      iteration,
    }
  })
}
