import { integer } from "../../options/field.ts"
import type { OptionsOf } from "../../options/table.ts"

/** Options of recording. */
export const recordingFields = {
  every: integer(1, "Interval between recorded iterations. 0: none.", { min: 0 }),
  groups: integer(undefined, "Maximum number of tasks per iteration whose episodes are recorded.", {
    min: 1,
    defaultText: "all",
  }),
  keep: integer(undefined, "Number of newest recorded iterations to keep.", { min: 1, defaultText: "all" }),
}

/** Selection of the episodes to record. */
export type RecordingOptions = OptionsOf<typeof recordingFields>
