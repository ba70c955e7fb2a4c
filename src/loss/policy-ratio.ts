import type { LossInput } from "./token-loss.ts"

/** Bound of log-ratios before exp, so that ratios are finite for a policy far from the old one. */
export const maxLogRatio = 20

/** Returns p / p_old from log p - log p_old, which is clamped to ±20. */
export function ratioOf(logRatio: number): number {
  return Math.exp(clamp(logRatio, -maxLogRatio, maxLogRatio))
}

/** Returns d ratio / d log p: the ratio, or 0 beyond the clamp. */
export function ratioSlope(logRatio: number): number {
  return Math.abs(logRatio) <= maxLogRatio ? ratioOf(logRatio) : 0
}

/** Returns Σ log p - log p_old over the tokens from `start` to before `end`: the log-ratio of a sequence. */
export function sumOfLogRatios(
  { logProbs, oldLogProbs }: Pick<LossInput, "logProbs" | "oldLogProbs">,
  start: number,
  end: number,
): number {
  let sum = 0
  for (let t = start; t < end; t++) sum += logProbs[t]! - oldLogProbs[t]!
  return sum
}

export function clamp(x: number, low: number, high: number): number {
  return x < low ? low : x > high ? high : x
}
