import { mostCheckpoints } from "../../training/checkpoint.ts"
import type { Config } from "../config/config.ts"

/** What a run does besides its iterations. */
export interface WholeRun {
  readonly iterations: number
  readonly evaluations: number
  /** Of each evaluation. */
  readonly evaluationEpisodes: number
  readonly checkpoints: number
}

export function wholeRun({ training }: Config): WholeRun {
  const { iterations, checkpointEvery, evaluation } = training
  return {
    iterations,
    // Before the first, after every so many, and after the last.
    evaluations: evaluation.every === 0 ? 0 : 1 + Math.ceil(iterations / evaluation.every),
    evaluationEpisodes: evaluation.tasks,
    checkpoints: Math.ceil(iterations / checkpointEvery),
  }
}

/** Bytes on the disk. */
export interface DiskUse {
  /** One checkpoint, a critic's part included. */
  readonly checkpoint: number
  /** As many as there ever are at once. */
  readonly checkpointsAtOnce: number
  /** The trained model. */
  readonly model: number
  readonly metrics: number
  /** All of these together. */
  readonly total: number
}

/** A line of metrics.jsonl, one with an evaluation and a critic's numbers. */
const bytesOfLine = 2000

export function diskUse({ training }: Config, run: WholeRun, checkpoint: number, model: number): DiskUse {
  const written = run.checkpoints + run.evaluations // one that is the best so far is saved
  const checkpointsAtOnce = mostCheckpoints(training.keepCheckpoints, written, run.evaluations > 0)
  const metrics = bytesOfLine * (run.iterations + 1)
  return { checkpoint, checkpointsAtOnce, model, metrics, total: checkpointsAtOnce * checkpoint + model + metrics }
}
