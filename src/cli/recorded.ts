import { GigpoError } from "../errors.ts"
import { recordedIterations } from "../view/record/folder.ts"

/** The recorded iterations of a run, ascending, one at least. Throws `BAD_ARGUMENT` where there is none. */
export async function someRecorded(run: string): Promise<readonly number[]> {
  const recorded = await recordedIterations(run)
  if (recorded.length > 0) return recorded
  throw new GigpoError(
    "BAD_ARGUMENT",
    `No episodes were recorded in ${run}: episodes.every in its configuration may be 0.`,
  )
}
