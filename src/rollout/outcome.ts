/**
 * - `terminated`, `truncated`: as the environment said; also `truncated` after `maxSteps`.
 * - `overflow`: the next prompt and reply would not fit the model; the steps before it count.
 * - `failed`: the environment, or the agent, threw, hung, was too late or broke its contract; counted, and left out of the loss.
 * - `dropped`: whoever played it says that it cannot be scored; counted, and left out of the loss.
 */
export type Outcome = (typeof outcomes)[number]

export const outcomes = ["terminated", "truncated", "overflow", "failed", "dropped"] as const
