/** Progress of the current stage, for a display. Reported frequently. */
export interface StageProgress {
  /** Part of the work. */
  readonly stage: "rollout" | "update" | "evaluation" | "sft" | "expert"
  /** Number of finished units: episodes, updates or batches. */
  readonly done: number
  /** Number of all units of the stage. */
  readonly total: number
}
