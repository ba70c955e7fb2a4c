import { without } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { outcomeFields, settle } from "./options.ts"
import { centred, outcomeEstimator } from "./outcomes.ts"
import { groupStatistics } from "./statistics.ts"

/** Options of `opo`. Episodes are weighted by length, so `episodeStatistics` does not apply. */
export const opoFields = { ...without(outcomeFields, "episodeStatistics") }

/** Options of `opo`. */
export type OpoOptions = OptionsOf<typeof opoFields>

/**
 * On-policy optimization with the optimal baseline (OPO, arXiv 2505.23585): A(τ) = R(τ) - Σ l_j R(τ_j) / Σ l_j over the episodes of the
 * task, with l the number of sampled tokens. This baseline minimizes the variance if the norm of the gradient grows with the length.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const opo = defineEstimator({
  name: "opo",
  fields: opoFields,
  about: {
    system: "OPO",
    origin: "baseline",
    changes: ["credit"],
    equation: "A = R - Σ l R / Σ l, l the number of tokens of an episode",
    source: "arXiv 2505.23585",
    status: "exact",
  },
  make(options: OpoOptions = {}): Estimator<StepCredit> {
    return outcomeEstimator(
      "opo",
      (progress) => ({ ...settle("opo", options, opoFields, progress), episodeStatistics: "episodes" as const }),
      (outcomes, settings) => {
        const { batch, scores, statistics } = outcomes
        const { mean } = groupStatistics(scores, batch.task, batch.lengths) // an episode's steps have its tokens among them
        return centred({ ...outcomes, statistics: { ...statistics, mean } }, settings)
      },
    )
  },
})
