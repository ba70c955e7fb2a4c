import type { RecordedStep } from "./recorded.ts"
import type { PageGroup } from "./sent-group.ts"

/** Quantities by which tokens can be coloured. */
export const measures = ["advantage", "entropy", "probability"] as const
export type Measure = (typeof measures)[number]

/** Value of a token; undefined if it was not recorded. Entropy in nats. */
export function tokenValue(step: RecordedStep, at: number, measure: Measure): number | undefined {
  if (measure === "entropy") return step.entropies?.[at]
  if (measure === "advantage") return typeof step.advantage === "object" ? step.advantage[at] : step.advantage
  const logProb = step.logProbs[at]
  return logProb === undefined ? undefined : Math.exp(logProb)
}

/** Number of shades on each side of zero. */
export const shades = 4

/** Value of the strongest shade: the largest magnitude in the group, so that colours are comparable between its episodes. */
export type Scale = Readonly<Record<Measure, number>>

export function tokenScale({ episodes, scale }: PageGroup): Scale {
  if (scale) return scale
  const most: Record<Measure, number> = { advantage: 0, entropy: 0, probability: 1 }
  for (const { steps } of episodes)
    for (const step of steps)
      for (const measure of ["advantage", "entropy"] as const)
        for (const at of step.reply.keys()) {
          const magnitude = Math.abs(tokenValue(step, at, measure) ?? 0)
          if (magnitude > most[measure]) most[measure] = magnitude
        }
  return most
}

/**
 * Shade of a value: from -`shades` to `shades` for advantages; from 0 to `shades` for entropies and probabilities. Low probabilities have the
 * strongest shade, so that surprising tokens stand out.
 */
export function shade(value: number | undefined, measure: Measure, scale: Scale): number {
  if (value === undefined || !(scale[measure] > 0)) return 0
  const share = Math.max(-1, Math.min(1, value / scale[measure]))
  return Math.round((measure === "probability" ? 1 - share : share) * shades) + 0
}
