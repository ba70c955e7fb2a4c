import { integer } from "../../options/field.ts"
import type { OptionsOf } from "../../options/table.ts"

/** Options of recording. */
export const recordingFields = {
  every: integer(1, "Interval between recorded iterations. 0: none.", { min: 0 }),
  groups: integer(undefined, "Maximum number of tasks per iteration whose episodes are recorded.", {
    min: 1,
    defaultText: "all",
  }),
  evaluation: integer(
    8,
    "Maximum number of episodes per evaluation that are recorded, unsuccessful ones first. 0: none.",
    {
      min: 0,
    },
  ),
  keep: integer(undefined, "Number of newest recorded iterations to keep, and of evaluations.", {
    min: 1,
    defaultText: "all",
  }),
}

/** Selection of the episodes to record. */
export type RecordingOptions = OptionsOf<typeof recordingFields>
