import type { Trainable } from "../engine/engine.ts"
import { number, scheduled } from "../options/field.ts"
import type { Scheduled } from "../options/schedule.ts"
import type { ScheduledField } from "../options/table.ts"

/** A learning rate by the size of the model: so much over its weights, within bounds. */
interface RateRule {
  readonly overWeights: number
  readonly least: number
  readonly most: number
}

// The lower bounds are what pretrained models of a billion weights and more are trained with (the paper's 1e-6, and ten times as
// much where the targets are given). A small model that was made from nothing learns next to nothing at these. The upper bounds are
// where one of a million weights still learns Sokoban steadily: at three times as much it forgets between what it learns.
const given = { overWeights: 1000, least: 1e-5, most: 3e-4 }
export const rateRules = {
  training: { overWeights: 100, least: 1e-6, most: 1e-4 },
  cloning: given,
  critic: given,
} as const satisfies Record<string, RateRule>

/** The option, which has no one number for a default. */
export function learningRateField({ overWeights, least, most }: RateRule): ScheduledField<string, undefined> {
  const otherwise = `${overWeights} / the weights of the model, at least ${least} and at most ${most}`
  return scheduled(number(undefined, "The size of AdamW's steps, at its peak.", { min: 0, defaultText: otherwise }))
}

/** The learning rate of a model of so many weights, to two digits; the smallest where an engine does not tell how many. */
export function learningRateFor({ overWeights, least, most }: RateRule, parameters = Number.POSITIVE_INFINITY): number {
  return Math.min(Math.max(Number((overWeights / parameters).toPrecision(2)), least), most)
}

/** Preferences are learned more gently than what is to be said. */
export function sftLearningRate({ loss }: { readonly loss: object }): RateRule {
  return "name" in loss && loss.name === "dpo" ? rateRules.training : rateRules.cloning
}

type Optimizer = { readonly learningRate: Scheduled | undefined }

export type Settled<O extends Optimizer> = Omit<O, "learningRate"> & { readonly learningRate: Scheduled }

/** The options of an optimizer with the learning rate that its run `chose`, or that suits the policy, where they leave it open. */
export function resolveLearningRate<O extends Optimizer>(
  optimizer: O,
  rule: RateRule,
  { parameters }: Pick<Trainable, "parameters">,
  chose?: Scheduled,
): Settled<O> {
  return { ...optimizer, learningRate: optimizer.learningRate ?? chose ?? learningRateFor(rule, parameters) }
}
