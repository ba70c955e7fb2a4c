import type { Trainable } from "../engine/engine.ts"
import type { SettledCriticOptions } from "./critic.ts"
import { rateRules, settleRate } from "./learning-rate.ts"
import type { SettledOptimizerOptions } from "./optimizer.ts"
import type { ResolvedTrainOptions } from "./options.ts"

interface Rates {
  readonly optimizer: SettledOptimizerOptions
  readonly critic: SettledCriticOptions
}

/** With the learning rates of policy and critic. */
export type SettledTrainOptions = ResolvedTrainOptions & Rates

/** Fills in the learning rates that the options leave to the size of the policy. */
export function settleRates<T extends Pick<ResolvedTrainOptions, keyof Rates>>(
  options: T,
  policy: Pick<Trainable, "parameters">,
): T & Rates {
  const { optimizer, critic } = options
  return {
    ...options,
    optimizer: settleRate(optimizer, rateRules.training, policy),
    critic: { ...critic, optimizer: settleRate(critic.optimizer, rateRules.critic, policy) },
  }
}
