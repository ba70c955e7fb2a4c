/** Exponents are clamped before exp, so that a policy far from the old one gives large numbers, never infinite ones. */
export const maxLogRatio = 20

/** p / p_old, of log p - log p_old. */
export function ratioOf(logRatio: number): number {
  return Math.exp(clamp(logRatio, -maxLogRatio, maxLogRatio))
}

/** d ratio / d log p: the ratio itself, 0 beyond the clamp. */
export function ratioSlope(logRatio: number): number {
  return Math.abs(logRatio) <= maxLogRatio ? ratioOf(logRatio) : 0
}

export function clamp(x: number, low: number, high: number): number {
  return x < low ? low : x > high ? high : x
}
