import { totalmem } from "node:os"
import { GigpoError } from "../../util/errors.ts"
import type { Config } from "./config.ts"

/** Bytes that an episode of one short step takes. */
const leastEpisode = 1024

/**
 * Refuses more episodes than this machine could hold, since those of one iteration, evaluation or cloning are all kept until the last
 * is over.
 *
 * @param what the keys that say how many, with their values
 * @throws GigpoError `BAD_CONFIG` with the memory that they would take
 */
export function checkCount(episodes: number, what: string): void {
  const most = Math.min(totalmem(), process.constrainedMemory?.() || Number.POSITIVE_INFINITY)
  if (episodes * leastEpisode <= most) return
  const gigabytes = (bytes: number) => `${Number((bytes / 1e9).toPrecision(2)).toLocaleString("en-US")} GB`
  throw new GigpoError(
    "BAD_CONFIG",
    `${what} asks for ${episodes.toLocaleString("en-US")} episodes, which are all kept until the last is over and take ` +
      `${gigabytes(episodes * leastEpisode)} at the very least; this machine has ${gigabytes(most)}. Ask for fewer.`,
  )
}

export function checkEvaluationSize({ training: { evaluation } }: Config): void {
  checkCount(evaluation.tasks, `training.evaluation.tasks=${evaluation.tasks}`)
}

export function checkTrainingSize(config: Config): void {
  const { groups, groupSize, evaluation } = config.training
  checkCount(groups * groupSize, `training.groups=${groups} × training.groupSize=${groupSize}`)
  if (evaluation.every > 0) checkEvaluationSize(config)
}

export function checkSftSize({ sft: { tasks, data } }: Config): void {
  if (data === undefined) checkCount(tasks, `sft.tasks=${tasks}`)
}
