import { number } from "../options/field.ts"
import type { OptionsOf } from "../options/table.ts"
import { largestReward } from "../util/largest-reward.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { outcomeFields, settle } from "./options.ts"
import { centred, outcomeEstimator } from "./outcomes.ts"

/** Options of `maxRl`. */
export const maxRlFields = {
  ...outcomeFields,
  epsilon: number(0, "Constant added to the mean return, at least 0. SkyRL has 1e-6.", { min: 0, max: largestReward }),
}

/** Options of `maxRl`. */
export type MaxRlOptions = OptionsOf<typeof maxRlFields>

/**
 * Maximum likelihood RL (MaxRL, arXiv 2602.02710): A(τ) = (R(τ) - mean R) / mean R over the episodes of the task. With returns of 0 and 1
 * this is the gradient of log P(success), truncated at the number of episodes: rarely solved tasks weigh more than in GRPO. Made for
 * returns of at least 0. A task whose mean return is not above 0 has advantages of 0. A single episode keeps what `singletonEpisode`
 * gives it, without the division.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const maxRl = defineEstimator({
  name: "max-rl",
  fields: maxRlFields,
  about: {
    system: "MaxRL",
    origin: "baseline",
    changes: ["credit"],
    equation: "A = (R - mean R) / mean R, 0 where mean R ≤ 0",
    source: "arXiv 2602.02710; prime-rl, SkyRL",
    status: "exact",
    note: "For returns of at least 0.",
  },
  make(options: MaxRlOptions = {}): Estimator<StepCredit> {
    return outcomeEstimator(
      "max-rl",
      (progress) => settle("max-rl", options, maxRlFields, progress),
      (outcomes, settings) => {
        const { size, mean } = outcomes.statistics
        return centred(outcomes, settings).map((distance, row) => {
          const task = outcomes.batch.task[row]!
          if (size[task] === 1) return distance
          return mean[task]! > 0 ? distance / (mean[task]! + settings.epsilon) : 0
        })
      },
    )
  },
})
