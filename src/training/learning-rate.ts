import type { Trainable } from "../engine/engine.ts"
import { number, scheduled } from "../options/field.ts"
import type { Scheduled } from "../options/schedule.ts"
import type { ScheduledField } from "../options/table.ts"

/** Default learning rate as a function of the model size: `overWeights` / number of weights, between `least` and `most`. */
interface RateRule {
  readonly overWeights: number
  readonly least: number
  readonly most: number
}

// The lower bounds suit pretrained models of a billion weights and more (the paper's 1e-6, and 1e-5 where the targets are given). Small
// models that are trained from scratch learn very little at these rates. At the upper bounds, a model of a million weights still learns
// Sokoban steadily; at three times these rates it forgets.
const given = { overWeights: 1000, least: 1e-5, most: 3e-4 }
/** Factor for an adapter: its best rate is about ten times that of full fine-tuning ("LoRA Without Regret", Thinking Machines 2025). */
const forAdapter = 10

export const rateRules = {
  training: { overWeights: 100, least: 1e-6, most: 1e-4 },
  cloning: given,
  critic: given,
} as const satisfies Record<string, RateRule>

/** Option of the learning rate. Its default depends on the size of the model. */
export function learningRateField({ overWeights, least, most }: RateRule): ScheduledField<string, undefined> {
  const otherwise = `${overWeights} / number of parameters, at least ${least} and at most ${most}; ${forAdapter} times that for an adapter`
  return scheduled(number(undefined, "Learning rate of AdamW after the warm-up.", { min: 0, defaultText: otherwise }))
}

/** Returns the learning rate for a policy, to two digits. Without a number of weights it is that of a large model. */
export function learningRateFor(
  { overWeights, least, most }: RateRule,
  { parameters = Number.POSITIVE_INFINITY, lora }: Learner,
): number {
  const rate = Math.min(Math.max(overWeights / parameters, least), most)
  return Number((lora ? forAdapter * rate : rate).toPrecision(2))
}

/** Returns the rule of the learning rate in supervised fine-tuning. DPO has a lower rate than cross-entropy. */
export function sftLearningRate({ loss }: { readonly loss: object }): RateRule {
  return "name" in loss && loss.name === "dpo" ? rateRules.training : rateRules.cloning
}

type Learner = Pick<Trainable, "parameters" | "lora">
type Optimizer = { readonly learningRate: Scheduled | undefined }

/** Options of an optimizer with a learning rate. */
export type Settled<O extends Optimizer> = Omit<O, "learningRate"> & { readonly learningRate: Scheduled }

/** Fills in the learning rate of an optimizer: the given rate, that of the resumed run (`chose`), or the default for the policy. */
export function resolveLearningRate<O extends Optimizer>(
  optimizer: O,
  rule: RateRule,
  policy: Learner,
  chose?: Scheduled,
): Settled<O> {
  return { ...optimizer, learningRate: optimizer.learningRate ?? chose ?? learningRateFor(rule, policy) }
}
