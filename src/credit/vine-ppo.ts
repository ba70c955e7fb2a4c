import { boolean, number, scheduled } from "../options/field.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { largestReward } from "../util/largest-reward.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { numbersOf, stepNumbers } from "./of-steps.ts"
import { outcomeFields, settle } from "./options.ts"
import { paidEstimator } from "./paid-estimator.ts"
import { stepsAfter } from "./turns.ts"
import { whiten } from "./whiten.ts"

/** Options of `vinePpo`. */
export const vinePpoFields = {
  gamma: scheduled(number(1, "Discount factor from one step to the next, in (0, 1].", { above: 0, max: 1 })),
  value: stepNumbers(
    "monte-carlo-value",
    "Value of the state before a step, the mean return of episodes that continue from it: the name of a metric, or in programs a " +
      "function of the batch. Steps without one are left out.",
  ),
  whiten: boolean(
    true,
    "Whether to whiten the advantages: normalize them to mean 0 and standard deviation 1 over all sampled tokens.",
  ),
  epsilon: number(1e-8, "Constant added to the variance, at least 0.", { min: 0, max: largestReward }),
  invalidActionPenalty: outcomeFields.invalidActionPenalty,
}

/** Options of `vinePpo`. */
export type VinePpoOptions = OptionsOf<typeof vinePpoFields>

/**
 * VinePPO estimator (arXiv 2410.01679) with steps as decisions: A_t = r_t + γ V(s_{t+1}) - V(s_t), then whitened over all sampled tokens.
 * V is a Monte Carlo estimate that is provided as an option; 0 after the last step of an episode. Steps with unknown values are skipped.
 * No critic is trained.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const vinePpo = defineEstimator({
  name: "vine-ppo",
  fields: vinePpoFields,
  about: {
    system: "VinePPO",
    origin: "relative",
    changes: ["credit"],
    equation: "A = r + γ V(s') - V(s), V by Monte Carlo, whitened over tokens",
    source: "arXiv 2410.01679; McGill-NLP/VinePPO",
    set: { "training.rolloutHooks.name": "monte-carlo" },
    status: "exact",
    note: "V is estimated by the hook `monte-carlo`, with groupSize episodes from each state. A step of the environment takes the place of a reasoning step.",
  },
  make(options: VinePpoOptions = {}): Estimator<StepCredit> {
    const settingsAt = (progress: TrainingProgress) => settle("vine-ppo", options, vinePpoFields, progress)
    return paidEstimator("vine-ppo", settingsAt, {}, async (batch, settings, context) => {
      const { gamma, value, whiten: isWhitened, epsilon } = settings
      const values = await numbersOf(value, batch, context, "vine-ppo")
      const after = stepsAfter(batch.episode)
      const surprises = batch.rewards.map(
        (reward, row) => reward + gamma * (after[row]! < 0 ? 0 : values[after[row]!]!) - values[row]!,
      )
      const skip = Uint8Array.from(surprises, (one) => (Number.isNaN(one) ? 1 : 0))
      const known = surprises.map((one) => (Number.isNaN(one) ? 0 : one))
      const lengths = batch.lengths.map((length, row) => (skip[row] === 1 ? 0 : length))
      return { advantages: isWhitened ? whiten(known, lengths, { epsilon }) : known, skip }
    })
  },
})
