import type { RecordedStep } from "./recorded.ts"
import type { PageGroup } from "./sent-group.ts"

/** Quantities by which tokens can be coloured. */
export const measures = ["advantage", "entropy", "probability", "mismatch"] as const
export type Measure = (typeof measures)[number]

/** Value of a token; undefined if it was not recorded. Entropy, and the mismatch log(p_trainer / p_sampler), in nats. */
export function tokenValue(step: RecordedStep, at: number, measure: Measure): number | undefined {
  if (measure === "entropy") return step.entropies?.[at]
  if (measure === "advantage") return typeof step.advantage === "object" ? step.advantage[at] : step.advantage
  const logProb = step.logProbs[at]
  const trainer = step.trainerLogProbs?.[at]
  if (measure === "mismatch") return logProb === undefined || trainer === undefined ? undefined : trainer - logProb
  return logProb === undefined ? undefined : Math.exp(logProb)
}

/** Smallest mismatch with the strongest shade, in nats: smaller differences are rounding, which no colour should emphasize. */
const leastMismatch = 0.1

/** Number of shades on each side of zero. */
export const shades = 4

/**
 * Value of the strongest shade: the largest magnitude in the group, so that colours are comparable between its episodes; 0 if there are no
 * values.
 */
export type Scale = Readonly<Record<Measure, number>>

export function tokenScale({ episodes, scale }: PageGroup): Scale {
  if (scale) return scale
  const most: Record<Measure, number> = { advantage: 0, entropy: 0, probability: 1, mismatch: 0 }
  const see = (measure: Measure, value: number) => {
    if (Math.abs(value) > most[measure]) most[measure] = Math.abs(value)
  }
  for (const { steps } of episodes)
    for (const { advantage = 0, entropies = [], logProbs, trainerLogProbs = [] } of steps) {
      if (logProbs.length === 0) continue // of others than the members whose tokens are there
      if (typeof advantage === "number") see("advantage", advantage)
      else for (const value of advantage) see("advantage", value)
      for (const value of entropies) see("entropy", value)
      for (let at = 0; at < trainerLogProbs.length; at++) see("mismatch", trainerLogProbs[at]! - logProbs[at]!)
    }
  if (most.mismatch > 0) most.mismatch = Math.max(most.mismatch, leastMismatch)
  return most
}

/**
 * Shade of a value: from -`shades` to `shades` for advantages; from 0 to `shades` for others. Low probabilities have the strongest shade, so
 * that surprising tokens stand out, and so has a mismatch of either sign.
 */
export function shade(value: number | undefined, measure: Measure, scale: Scale): number {
  if (value === undefined || !(scale[measure] > 0)) return 0
  const share = Math.max(-1, Math.min(1, value / scale[measure]))
  const level = measure === "probability" ? 1 - share : measure === "mismatch" ? Math.abs(share) : share
  return Math.round(level * shades) + 0
}
