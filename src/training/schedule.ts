import type { OptimizerOptions } from "./options.ts"

/** Learning rate of step `index` (from 0) of `total`: a linear warm-up, then constant, or down to 0 after the last step. */
export function learningRate(index: number, total: number, options: Required<OptimizerOptions>): number {
  const { learningRate: peak, warmup, schedule } = options
  if (index < warmup) return (peak * (index + 1)) / warmup
  const progress = (index - warmup) / Math.max(total - warmup, 1)
  if (schedule === "linear") return peak * (1 - progress)
  if (schedule === "cosine") return (peak * (1 + Math.cos(Math.PI * progress))) / 2
  return peak
}
