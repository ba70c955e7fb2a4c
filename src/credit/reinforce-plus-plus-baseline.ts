import { defineEstimator } from "./define-estimator.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { type OutcomeOptions, outcomeFields, settle } from "./options.ts"
import { centred, outcomeEstimator } from "./outcomes.ts"
import { whiten } from "./whiten.ts"

/**
 * REINFORCE++ with a baseline (arXiv 2501.03262): R(τ) - mean R over the episodes of the task, then whitened over all sampled tokens of
 * the batch. The scale is therefore that of the batch, not of each task.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const reinforcePlusPlusBaseline = defineEstimator({
  name: "reinforce-plus-plus-baseline",
  fields: outcomeFields,
  about: {
    system: "REINFORCE++ with a baseline",
    origin: "baseline",
    changes: ["credit"],
    equation: "A = R - mean R, whitened over the batch",
    source: "arXiv 2501.03262",
    status: "exact",
  },
  make(options: OutcomeOptions = {}): Estimator<StepCredit> {
    const name = "reinforce-plus-plus-baseline"
    return outcomeEstimator(
      name,
      (progress) => settle(name, options, outcomeFields, progress),
      (outcomes, settings) => whiten(centred(outcomes, settings), outcomes.batch.lengths),
    )
  },
})
