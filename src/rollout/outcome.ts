/**
 * Outcome of an episode:
 *
 * - `terminated`: ended by the rules of the environment.
 * - `truncated`: ended by the environment's or the rollout's limit (`maxSteps`).
 * - `overflow`: the next prompt and completion would not fit the model. The steps before count.
 * - `failed`: the environment or agent threw an error, exceeded a time limit or broke its contract. Counted, but not trained on.
 * - `excluded`: the agent declared that the episode cannot be scored. Counted, but not trained on.
 */
export type Outcome = (typeof outcomes)[number]

export const outcomes = ["terminated", "truncated", "overflow", "failed", "excluded"] as const

/** Results of episodes, as reported by the environment. */
export const results = ["failure", "success", "untold"] as const
export type Result = (typeof results)[number]

/** Returns "success" for a metric `success` of 1, "failure" for another value, and "untold" without the metric. */
export function resultOf(success: number | null | undefined): Result {
  if (success === undefined || success === null) return "untold"
  return success === 1 ? "success" : "failure"
}
