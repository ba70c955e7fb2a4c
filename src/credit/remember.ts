import { sampledWeights } from "../engine/sequence.ts"
import { GigpoError } from "../util/errors.ts"
import { joined } from "../util/joined.ts"
import type { Batch, EstimatorStep } from "./estimator.ts"
import type { Remembered } from "./replay-memory.ts"

/** Record of a step as the training stores it, with data that estimators do not read. */
interface SampledRecord extends EstimatorStep {
  readonly prompt: Int32Array
  readonly completion: Int32Array
  readonly logProbs: Float32Array
  readonly forced?: Uint8Array
  readonly attachments?: unknown
  readonly constraint?: unknown
}

/**
 * Returns the good steps in the form in which they can be trained on again. Their log-probabilities are those of the trainer where it
 * recomputed them, as in the authors' code, else those of the sampler. Steps with images or constraints are left out, because checkpoints
 * cannot store them.
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
  if (steps.length < length || steps.some((step) => !("completion" in step)))
    throw new GigpoError("BAD_ARGUMENT", "spear replays earlier steps; give each step a record with its tokens.")
  return (steps as readonly SampledRecord[]).flatMap((step, row) => {
    const { prompt, completion, logProbs, forced, offPolicy, attachments, constraint } = step
    if (!isGood(row) || attachments !== undefined || constraint !== undefined) return []
    const old = offPolicy ? undefined : statistics?.old?.[row]
    return {
      tokens: joined(Int32Array, [prompt, completion]),
      start: prompt.length,
      logProbs: old ? Float32Array.from(old) : logProbs,
      ...(forced && { weights: sampledWeights(forced) }),
      ...(offPolicy && { offPolicy }),
      outcome: returns[row]!,
      iteration,
    }
  })
}
