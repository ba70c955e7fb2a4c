import type { RecordedEpisode, RecordedStep } from "./recorded.ts"

/** Advantage of a step; the mean if there is one advantage per token. */
export function advantageOf({ advantage }: Pick<RecordedStep, "advantage">): number | undefined {
  return typeof advantage === "object" ? mean(advantage) : advantage
}

/** Mean of the defined numbers. */
export function mean(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0) / known.length
}

/** Standard deviation of the defined numbers. */
export function spread(values: readonly (number | undefined)[]): number | undefined {
  const middle = mean(values)
  if (middle === undefined) return undefined
  return Math.sqrt(mean(values.map((value) => (value === undefined ? value : (value - middle) ** 2)))!)
}

/** [steps] Undiscounted reward-to-go of each step. */
export function rewardsToGo({ steps }: RecordedEpisode): number[] {
  let sum = 0
  return steps.map((_, at) => (sum += steps[steps.length - 1 - at]!.reward)).reverse()
}
