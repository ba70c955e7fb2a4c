/**
 * - `terminated`, `truncated`: as the environment said; also `truncated` after `maxSteps`.
 * - `overflow`: the next prompt and reply would not fit the model; the steps before it count.
 * - `failed`: the environment, or the agent, threw, hung, was too late or broke its contract; counted, and left out of the loss.
 * - `dropped`: whoever played it says that it cannot be scored; counted, and left out of the loss.
 */
export type Outcome = (typeof outcomes)[number]

export const outcomes = ["terminated", "truncated", "overflow", "failed", "dropped"] as const

/** How an episode went, as its environment told. */
export const results = ["failure", "success", "untold"] as const
export type Result = (typeof results)[number]

/** Success is a metric `success` of 1, of an evaluation as of a picture; "untold" where there is no such metric. */
export function resultOf(success: number | null | undefined): Result {
  if (success === undefined || success === null) return "untold"
  return success === 1 ? "success" : "failure"
}
