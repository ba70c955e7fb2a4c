import { type Counted, mostCheckpoints } from "../../training/whole-run.ts"

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

export function diskUse(training: Counted, checkpoint: number, model: number): DiskUse {
  const checkpointsAtOnce = mostCheckpoints(training)
  const metrics = bytesOfLine * (training.iterations + 1)
  return { checkpoint, checkpointsAtOnce, model, metrics, total: checkpointsAtOnce * checkpoint + model + metrics }
}
