import type { ResolvedTrainOptions } from "./options.ts"

/** What a run does besides its iterations. */
export interface WholeRun {
  readonly iterations: number
  readonly evaluations: number
  /** Of each evaluation. */
  readonly evaluationEpisodes: number
  readonly checkpoints: number
}

/** What such totals follow from. */
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

/** As many checkpoints as there ever are at once: those kept, the best by evaluation, and the one that is being written. */
export function mostCheckpoints(options: Counted): number {
  const { checkpoints, evaluations } = wholeRun(options)
  const written = checkpoints + evaluations // one that is the best so far is saved
  return Math.min(options.keepCheckpoints + (evaluations > 0 ? 1 : 0) + 1, written)
}
