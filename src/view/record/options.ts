import { whole } from "../../options/field.ts"
import type { OptionsOf } from "../../options/table.ts"

/** Which episodes of a run are recorded. */
export const recordingFields = {
  every: whole(1, "Record the episodes of every so many iterations. 0: none.", { least: 0 }),
  groups: whole(undefined, "Most tasks of an iteration whose episodes are recorded.", { least: 1, otherwise: "all" }),
  keep: whole(undefined, "Newest recorded iterations to keep.", { least: 1, otherwise: "all" }),
}

export type RecordingOptions = OptionsOf<typeof recordingFields>
