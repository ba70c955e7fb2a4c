import type { RecordedGroup, RecordedStep } from "./recorded.ts"

/** What tokens are coloured by. */
export const measures = ["advantage", "entropy", "probability"] as const
export type Measure = (typeof measures)[number]

/** A token's number; absent where it was not recorded. Entropy in nats. */
export function tokenValue(step: RecordedStep, at: number, measure: Measure): number | undefined {
  if (measure === "entropy") return step.entropies?.[at]
  if (measure === "advantage") return typeof step.advantage === "object" ? step.advantage[at] : step.advantage
  const logProb = step.logProbs[at]
  return logProb === undefined ? undefined : Math.exp(logProb)
}

/** How many shades there are on each side of none. */
export const shades = 4

/** What the strongest shade stands for: the largest magnitude in the group, so that one colour means one number in all its episodes. */
export type Scale = Readonly<Record<Measure, number>>

export function tokenScale({ episodes }: RecordedGroup): Scale {
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
 * The shade of a number: from -`shades` to `shades` for advantages, 0 being none; from 0 for entropies, and for probabilities, of which
 * the lowest is the strongest shade: it is the surprising token that is looked for.
 */
export function shade(value: number | undefined, measure: Measure, scale: Scale): number {
  if (value === undefined || !(scale[measure] > 0)) return 0
  const share = Math.max(-1, Math.min(1, value / scale[measure]))
  return Math.round((measure === "probability" ? 1 - share : share) * shades) + 0
}
