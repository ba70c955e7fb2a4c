/** Progress of the current stage, for a display. Reported frequently. */
export interface Progress {
  readonly stage: "rollout" | "update" | "evaluation" | "sft" | "expert"
  readonly done: number
  readonly total: number
}
