import type { AdamWParameters } from "../engine/engine.ts"
import { scheduleValue } from "../options/schedule.ts"
import type { SettledOptimizerOptions } from "./optimizer.ts"

/** Place of an optimizer step: `index` (from 0) of `total`, with `perIteration` steps per iteration (in fine-tuning: per epoch). */
export interface StepPlace {
  readonly index: number
  readonly total: number
  readonly perIteration: number
}

/** Returns the parameters of AdamW for an optimizer step. */
export function adamwAt(
  optimizer: SettledOptimizerOptions,
  { index, total, perIteration }: StepPlace,
): AdamWParameters {
  const progress = { iteration: index / perIteration, iterations: total / perIteration }
  const peak = scheduleValue(optimizer.learningRate, progress)
  return {
    learningRate: learningRate(index, total, {
      learningRate: peak,
      warmup: Math.round(optimizer.warmup * perIteration),
      schedule: optimizer.schedule,
    }),
    beta1: optimizer.beta1,
    beta2: optimizer.beta2,
    epsilon: optimizer.epsilon,
    weightDecay: scheduleValue(optimizer.weightDecay, progress),
    maxGradientNorm: scheduleValue(optimizer.maxGradientNorm, progress),
  }
}

interface RateOptions {
  readonly learningRate: number
  /** Steps over which the learning rate rises from 0. */
  readonly warmup: number
  readonly schedule: "constant" | "linear" | "cosine"
}

/** Returns the learning rate of step `index` (from 0) of `total`: a linear warm-up, then constant, or decay to 0 after the last step. */
export function learningRate(index: number, total: number, options: RateOptions): number {
  const { learningRate: peak, warmup, schedule } = options
  if (index < warmup) return (peak * Math.min(index + 1, warmup)) / warmup
  const progress = (index - warmup) / Math.max(total - warmup, 1)
  if (schedule === "linear") return peak * (1 - progress)
  if (schedule === "cosine") return (peak * (1 + Math.cos(Math.PI * progress))) / 2
  return peak
}
