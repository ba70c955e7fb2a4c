import { defineEstimator } from "./define-estimator.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { type OutcomeOptions, outcomeFields, settle } from "./options.ts"
import { centred, firstSteps, outcomeEstimator } from "./outcomes.ts"

/**
 * Group policy gradient (GPG, arXiv 2504.02546): A(τ) = α (R(τ) - mean R over the episodes of the task). α compensates for episodes
 * without a learning signal. α is the number of episodes of the batch divided by the number of those whose return is not 0, as in verl.
 * The paper counts tasks with equal returns instead. Intended for a policy-gradient loss without ratio.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const gpg = defineEstimator({
  name: "gpg",
  fields: outcomeFields,
  about: {
    system: "GPG",
    origin: "baseline",
    changes: ["credit", "loss"],
    equation: "A = α (R - mean R), α = episodes / episodes with nonzero return; loss -A log p",
    source: "arXiv 2504.02546",
    set: { "training.loss.name": "reinforce" },
    status: "exact",
    note: "α as in verl; the paper counts tasks with equal returns.",
  },
  make(options: OutcomeOptions = {}): Estimator<StepCredit> {
    return outcomeEstimator(
      "gpg",
      (progress) => settle("gpg", options, outcomeFields, progress),
      (outcomes, settings) => {
        const first = firstSteps(outcomes.batch.episode)
        const returns = outcomes.returns.filter((_, row) => first[row] === 1)
        const alpha = returns.length / Math.max(1, returns.filter((value) => value !== 0).length)
        return centred(outcomes, settings).map((value) => alpha * value)
      },
    )
  },
})
