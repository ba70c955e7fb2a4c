/** How far the work under way has come; for a display, told often. */
export interface Progress {
  readonly stage: "rollout" | "update" | "evaluation" | "sft" | "expert"
  readonly done: number
  readonly total: number
}
