import type { Estimator, StepCredit } from "./estimator.ts"
import { type OutcomeOptions, outcomeFields, settle } from "./options.ts"
import { centred, outcomeEstimator } from "./outcomes.ts"

/**
 * Dr. GRPO (arXiv 2503.20783): A(τ) = R(τ) - mean R over the episodes of the task, undivided, so that tasks which are nearly always
 * solved, or never, weigh no more than others. Belongs with a loss that is summed over tokens.
 *
 * @throws BAD_ARGUMENT for an option that has no meaning
 */
export function drGrpo(options: OutcomeOptions = {}): Estimator<StepCredit> {
  return outcomeEstimator("dr-grpo", (moment) => settle("dr-grpo", options, outcomeFields, moment), centred)
}
