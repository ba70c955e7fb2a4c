import type { Trainable } from "../engine/engine.ts"
import type { SettledCriticOptions } from "./critic.ts"
import { rateRules, settleRate } from "./learning-rate.ts"
import type { SettledOptimizerOptions } from "./optimizer.ts"
import type { ResolvedTrainOptions } from "./options.ts"
import type { SettledRates } from "./run-config.ts"

interface Rates {
  readonly optimizer: SettledOptimizerOptions
  readonly critic: SettledCriticOptions
}

/** With the learning rates of policy and critic. */
export type SettledTrainOptions = ResolvedTrainOptions & Rates

/** By which a run keeps what was chosen: the options' dotted keys. */
export const rateKeys = { policy: "optimizer.learningRate", critic: "critic.optimizer.learningRate" } as const

/** Fills in the learning rates that the options leave to the size of the policy. */
export function settleRates<T extends Pick<ResolvedTrainOptions, keyof Rates>>(
  options: T,
  policy: Pick<Trainable, "parameters">,
  chose: SettledRates = {},
): T & Rates {
  const { optimizer, critic } = options
  return {
    ...options,
    optimizer: settleRate(optimizer, rateRules.training, policy, chose[rateKeys.policy]),
    critic: { ...critic, optimizer: settleRate(critic.optimizer, rateRules.critic, policy, chose[rateKeys.critic]) },
  }
}

/** The rates that were left open, for the run to keep; the critic's where there is one. */
export function chosenRates(
  given: Pick<ResolvedTrainOptions, keyof Rates>,
  { optimizer, critic }: Rates,
  hasCritic: boolean,
): SettledRates {
  const [policy, value] = [optimizer.learningRate, critic.optimizer.learningRate]
  return {
    ...(given.optimizer.learningRate === undefined && { [rateKeys.policy]: policy }),
    ...(hasCritic && given.critic.optimizer.learningRate === undefined && { [rateKeys.critic]: value }),
  }
}
