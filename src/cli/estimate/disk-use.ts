import { type Counted, mostCheckpoints } from "../../training/whole-run.ts"
import type { Config } from "../config/config.ts"
import type { Lengths } from "./measure.ts"

/** Bytes on the disk. */
export interface DiskUse {
  /** One checkpoint, a critic's part included. */
  readonly checkpoint: number
  /** As many as there ever are at once. */
  readonly checkpointsAtOnce: number
  /** The trained model. */
  readonly model: number
  readonly metrics: number
  /** Those that are recorded. */
  readonly episodes: number
  /** All of these together. */
  readonly total: number
}

/** A line of metrics.jsonl, one with an evaluation and a critic's numbers. */
const bytesOfLine = 2000

export function diskUse(training: Counted, checkpoint: number, model: number, episodes: number): DiskUse {
  const checkpointsAtOnce = mostCheckpoints(training)
  const metrics = bytesOfLine * (training.iterations + 1)
  const total = checkpointsAtOnce * checkpoint + model + metrics + episodes
  return { checkpoint, checkpointsAtOnce, model, metrics, episodes, total }
}

/** Compressed: a token of a reply has two numbers that no compressor makes less of, prompts repeat one another. */
const recorded = { file: 1500, step: 40, promptToken: 0.5, replyToken: 9 }

/** Of the episodes that are recorded, about. */
export function recordedBytes({ episodes, training }: Config, lengths: Lengths): number {
  const { every, groups = Number.POSITIVE_INFINITY, keep = Number.POSITIVE_INFINITY } = episodes
  if (every === 0) return 0
  const { steps, promptTokens, replyTokens } = lengths
  const step = recorded.step + promptTokens * recorded.promptToken + replyTokens * recorded.replyToken
  const played = Math.min(training.groups, groups) * training.groupSize
  return Math.min(Math.floor(training.iterations / every), keep) * (recorded.file + played * steps * step)
}
