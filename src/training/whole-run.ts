import type { ResolvedTrainOptions } from "./options.ts"

/** Numbers of evaluations and checkpoints of a run. */
export interface WholeRun {
  readonly iterations: number
  readonly evaluations: number
  /** Episodes per evaluation. */
  readonly evaluationEpisodes: number
  readonly checkpoints: number
}

/** Options that determine the numbers of evaluations and checkpoints. */
export type Counted = Pick<ResolvedTrainOptions, "iterations" | "checkpointEvery" | "keepCheckpoints" | "evaluation">

export function wholeRun({ iterations, checkpointEvery, evaluation }: Counted): WholeRun {
  return {
    iterations,
    // Before the first, after every so many, and after the last.
    evaluations: evaluation.every === 0 ? 0 : 1 + Math.ceil(iterations / evaluation.every),
    evaluationEpisodes: evaluation.tasks,
    checkpoints: Math.ceil(iterations / checkpointEvery),
  }
}

/** Returns the maximum number of checkpoints on disk: those kept, the best by evaluation, and the one that is being written. */
export function mostCheckpoints(options: Counted): number {
  const { checkpoints, evaluations } = wholeRun(options)
  const written = checkpoints + evaluations // each evaluation may be the best so far, which is saved
  return Math.min(options.keepCheckpoints + (evaluations > 0 ? 1 : 0) + 1, written)
}
