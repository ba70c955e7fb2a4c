import { number, oneOf, scheduled } from "../options/field.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { largestReward } from "../util/largest-reward.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { normalizer } from "./normalizer.ts"
import { gigpoFields, outcomeFields, settle } from "./options.ts"
import { paidEstimator } from "./paid-estimator.ts"
import { discountedReturns } from "./returns.ts"
import { CONSTANT_TOLERANCE, groupStatistics } from "./statistics.ts"
import { stepsAfter } from "./turns.ts"

/** Options of `stateValue`. */
export const stateValueFields = {
  gamma: gigpoFields.gamma,
  lambda: scheduled(
    number(
      0.95,
      "λ of GAE, in [0, 1]: 0 uses the value of the next state only, 1 the rest of the episode only, which is GiGPO's step advantage before " +
        "normalization.",
      { min: 0, max: 1 },
    ),
  ),
  normalization: oneOf(
    "sample",
    ["sample", "population", "none"],
    "Divisor of the distance from the mean over all steps of the task: the standard deviation of the sample (n - 1) or of the population (n), " +
      'each plus epsilon, or 1 ("none").',
  ),
  epsilon: number(1e-6, "Constant added to the standard deviation, at least 0.", { min: 0, max: largestReward }),
  invalidActionPenalty: outcomeFields.invalidActionPenalty,
}

/** Options of `stateValue`. */
export type StateValueOptions = OptionsOf<typeof stateValueFields>

/**
 * GAE without a critic: V(s) is the mean discounted return of all visits of anchor state s in the episodes of the task. Then
 *
 *     δ_t = r_t + γ V(s_{t+1}) - V(s_t);  A_t = Σ_k (γλ)^k δ_{t+k}, normalized over the steps of the task
 *
 * V is 0 after the last step of an episode. A state that was visited once has the return of its visit as its value. Our estimator: it has
 * the parts that summaries of GAGPO (arXiv 2605.13217) describe; the paper's constants are not known to us. The details contain
 * `stateValues`, [steps].
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const stateValue = defineEstimator({
  name: "state-value",
  fields: stateValueFields,
  about: {
    system: "state values by visits",
    origin: "relative",
    changes: ["credit"],
    equation:
      "A = Σ (γ λ)^k δ, δ = r + γ V(s') - V(s), V(s) = mean return of the task's visits of s; normalized per task",
    source: "ours; GAGPO, arXiv 2605.13217, by summaries",
    status: "interpreted",
    note: "No critic. GAGPO adds one ratio per action: `training.loss.importanceSamplingLevel=sequence`. Its γ, λ and epsilon are not known to us.",
  },
  make(options: StateValueOptions = {}): Estimator<StepCredit> {
    const settingsAt = (progress: TrainingProgress) => settle("state-value", options, stateValueFields, progress)
    return paidEstimator("state-value", settingsAt, { groups: "wanted" }, (batch, settings) => {
      const { gamma, lambda, normalization: std, epsilon } = settings
      const stateValues = meanReturns(batch, gamma)
      const surprises = surprisesOf(batch, stateValues, gamma)
      const traces = lambda === 0 ? surprises : discountedReturns(surprises, gamma * lambda, batch.episode)
      return { advantages: normalizer({ std, epsilon })(traces, batch.task), details: { stateValues } }
    })
  },
})

/** Mean discounted return of all visits of each step's anchor state in the episodes of its task, [steps]. */
export function meanReturns({ rewards, episode, anchorGroups }: Batch, gamma: number): Float64Array {
  const { mean } = groupStatistics(discountedReturns(rewards, gamma, episode), anchorGroups)
  return Float64Array.from(anchorGroups, (group) => mean[group]!)
}

/** Temporal differences δ_t, [steps]; exactly 0 where they are rounding errors of the values. */
function surprisesOf({ rewards, episode }: Batch, values: Float64Array, gamma: number): Float64Array {
  const after = stepsAfter(episode)
  return rewards.map((reward, row) => {
    const next = after[row]! < 0 ? 0 : gamma * values[after[row]!]!
    const surprise = reward + next - values[row]!
    const size = Math.max(Math.abs(reward), Math.abs(next), Math.abs(values[row]!))
    return Math.abs(surprise) <= CONSTANT_TOLERANCE * size ? 0 : surprise
  })
}
