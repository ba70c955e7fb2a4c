import { join } from "node:path"
import { readRunConfig } from "../runs/config.ts"
import { type Recorded, runFiles } from "../runs/files.ts"
import { GigpoError } from "../util/errors.ts"
import { recordedIterations } from "../view/record/folder.ts"
import { isFromCode } from "./config/resolve.ts"

/** Recorded iterations of a run, or of its evaluations, ascending. Throws `BAD_ARGUMENT` if there are none. */
export async function someRecorded(run: string, of: Recorded = "training"): Promise<readonly number[]> {
  const recorded = await recordedIterations(run, of)
  if (recorded.length > 0) return recorded
  if (of === "evaluation")
    throw new GigpoError(
      "BAD_ARGUMENT",
      `No episodes of evaluations were recorded in ${run}: there was no evaluation yet (training.evaluation.every), or episodes.evaluation is 0.`,
    )
  const why = isFromCode(await readRunConfig(join(run, runFiles.config)))
    ? "the run was started from code without a recording observer: observers: [recordEpisodes({ tokenizer })]"
    : "recording.every in its configuration may be 0"
  throw new GigpoError("BAD_ARGUMENT", `No episodes were recorded in ${run}: ${why}.`)
}
