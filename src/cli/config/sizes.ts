import { totalmem } from "node:os"
import { GigpoError } from "../../util/errors.ts"
import type { Config } from "./config.ts"

/** Minimum bytes of an episode of one short step. */
const leastEpisode = 1024

/**
 * Rejects more episodes than this machine could hold: those of one iteration, evaluation or SFT data set are kept until
 * the last one ends.
 *
 * @param what - the keys that set the count, with their values
 * @throws GigpoError `BAD_CONFIG` with the memory they would take
 */
export function checkCount(episodes: number, what: string): void {
  const most = Math.min(totalmem(), process.constrainedMemory?.() || Number.POSITIVE_INFINITY)
  if (episodes * leastEpisode <= most) return
  const gigabytes = (bytes: number) => `${Number((bytes / 1e9).toPrecision(2)).toLocaleString("en-US")} GB`
  throw new GigpoError(
    "BAD_CONFIG",
    `${what} means ${episodes.toLocaleString("en-US")} episodes, which are kept until the last one ends and take ` +
      `at least ${gigabytes(episodes * leastEpisode)}; this machine has ${gigabytes(most)}. Reduce the number.`,
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
