import { defineEstimator } from "./define-estimator.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { type OutcomeOptions, outcomeFields, settle } from "./options.ts"
import { centred, outcomeEstimator } from "./outcomes.ts"

/**
 * Dr. GRPO estimator (arXiv 2503.20783): A(τ) = R(τ) - mean R over the episodes of the task. There is no division, so tasks that are
 * nearly always or never solved have no larger weight than others. Intended for a loss that is summed over tokens.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const drGrpo = defineEstimator({
  name: "dr-grpo",
  fields: outcomeFields,
  about: {
    system: "Dr. GRPO",
    origin: "baseline",
    changes: ["credit", "loss"],
    equation: "A = R - mean R; the loss is summed over tokens and divided by a constant",
    source: "arXiv 2503.20783",
    set: {
      "training.loss.aggregation": "sequence-mean-fixed-length",
      "training.loss.fixedLength": 8,
    },
    status: "exact",
    note: "fixedLength is the maximum completion length.",
  },
  make(options: OutcomeOptions = {}): Estimator<StepCredit> {
    return outcomeEstimator("dr-grpo", (progress) => settle("dr-grpo", options, outcomeFields, progress), centred)
  },
})
