import { type Sequence, sampledWeights, stepSequence } from "../engine/sequence.ts"
import { GigpoError } from "../util/errors.ts"
import type { Batch, EstimatorCandidate } from "./estimator.ts"

// Completions that were sampled for a step and not acted on (`hooks.candidates`). They belong to the same state as the completion that was
// acted on, and are trained on as extra sequences.

/** Scores of all completions of the steps' prompts. The completion that was acted on comes first in each step. */
export interface CandidateScores {
  /** Score of each completion, [completions]. */
  readonly scores: Float64Array
  /** Step of each completion, [completions]; groups for a normalizer. */
  readonly steps: Int32Array
  /** Index of the first completion of each step, [steps + 1]. */
  readonly offsets: Int32Array
}

/**
 * Returns the scores of all completions. A step without candidates has a single completion, scored with its reward.
 *
 * @throws BAD_ARGUMENT for a batch without records
 */
export function candidateScores(batch: Batch): CandidateScores {
  const records = recordsOf(batch)
  const offsets = new Int32Array(records.length + 1)
  for (const [step, { candidates = [] }] of records.entries())
    offsets[step + 1] = offsets[step]! + 1 + candidates.length
  const all = records.map(({ score, candidates = [] }, step) => [
    score ?? batch.rewards[step]!,
    ...candidates.map((candidate) => candidate.score),
  ])
  const steps = Int32Array.from(all.flatMap((scores, step) => scores.map(() => step)))
  return { scores: Float64Array.from(all.flat()), steps, offsets }
}

/**
 * Returns `Credit.extraSequences` for the candidates that were not acted on, with one advantage each. Forced tokens have weight 0.
 *
 * @param advantagesOf advantages of the candidates of one step; undefined leaves out all of them, NaN a single one
 * @throws BAD_ARGUMENT for a batch without records, or a wrong number of advantages
 */
export function candidateSequences(
  batch: Batch,
  advantagesOf: (step: number, candidates: readonly EstimatorCandidate[]) => ArrayLike<number> | undefined,
): Sequence[] {
  return recordsOf(batch).flatMap(({ candidates = [], offPolicy = false }, step) => {
    const advantages = candidates.length > 0 ? advantagesOf(step, candidates) : undefined
    if (advantages === undefined) return []
    if (advantages.length !== candidates.length)
      throw new GigpoError(
        "BAD_ARGUMENT",
        `candidateSequences: step ${step} has ${candidates.length} candidates but ${advantages.length} advantages; give one each.`,
      )
    return candidates.flatMap((candidate, at) =>
      Number.isNaN(advantages[at]!) ? [] : [rowOf(candidate, advantages[at]!, offPolicy)],
    )
  })
}

function rowOf(
  { prompt, completion, logProbs, forced, attachments }: EstimatorCandidate,
  advantage: number,
  offPolicy: boolean,
): Sequence {
  const weights = forced && sampledWeights(forced)
  const row = stepSequence(prompt, completion, {
    logProbs,
    advantage,
    ...(weights && { weights }),
    ...(offPolicy && { offPolicy }),
  })
  return attachments ? { ...row, attachments } : row
}

function recordsOf({ steps, length }: Batch): NonNullable<Batch["steps"]> {
  if (steps !== undefined || length === 0) return steps ?? []
  throw new GigpoError("BAD_ARGUMENT", "Candidates are part of the records of steps; give every step its record.")
}
