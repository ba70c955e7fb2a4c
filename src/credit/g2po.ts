import { withDefaults } from "../options/defaults.ts"
import { without } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { gigpoVariant } from "./gigpo-variant.ts"
import { gigpoFields } from "./options.ts"
import { payPenalties } from "./penalties.ts"
import { gigpoPresets } from "./presets.ts"
import { meanReturns } from "./state-value.ts"
import { stepsAfter } from "./turns.ts"

/** Options of `g2po`. The defaults are those of the authors' code for ALFWorld. */
export const g2poFields = {
  ...withDefaults(without(gigpoFields, "similarity", "stepScope", "whiten"), gigpoPresets.verlAgent),
}

/** Options of `g2po`. */
export type G2poOptions = OptionsOf<typeof g2poFields>

/**
 * G2PO estimator (arXiv 2606.22995): GiGPO with a step advantage of two parts, on the graph of the task's states. V(s) = γ · mean
 * discounted return of all visits of anchor state s in the episodes of the task, and q_t = r_t + V(s_{t+1}), with V = 0 after the last step.
 *
 *     A = A^E + ω (norm(q_t) among the steps from the same state + norm(q_t - V(s_t)) among all steps of the task)
 *
 * The authors' code assigns rewards at the end of episodes only; rewards of other steps are part of q by our generalization. With γ below 1,
 * the second part ranks late steps above early ones even if all returns are equal. Singletons of a state have 0 as the first part.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const g2po = defineEstimator({
  name: "g2po",
  fields: g2poFields,
  about: {
    system: "G2PO",
    origin: "successor",
    changes: ["credit"],
    equation:
      "A = A^E + ω (norm(q) per state + norm(q - V(s)) per task), q = r + V(s'), V(s) = γ mean return of the visits of s",
    source: "arXiv 2606.22995, its code (Nala-YN/G2PO)",
    status: "exact",
    note: "The defaults are those for ALFWorld; WebShop has `normalization: none`. Rewards before the end of an episode are our generalization.",
  },
  make(options: G2poOptions = {}): Estimator<StepCredit> {
    return gigpoVariant("g2po", options, g2poFields, "wanted", (settings, plain) => ({
      ...settings,
      levels: (batch) => {
        const { next, gains } = transitions(batch, settings.gamma)
        // A penalty that is placed in the reward is already included in these rewards.
        const scores = payPenalties(plain, settings).score(next)
        return [
          { ids: batch.anchorGroups, values: scores },
          { ids: batch.task, values: gains },
        ]
      },
    }))
  },
})

/** Value q of each step's transition, and its gain q - V(s), [steps]. */
function transitions(batch: Batch, gamma: number): { readonly next: Float64Array; readonly gains: Float64Array } {
  const values = meanReturns(batch, gamma).map((value) => gamma * value)
  const after = stepsAfter(batch.episode)
  const next = batch.rewards.map((reward, row) => reward + (after[row]! < 0 ? 0 : values[after[row]!]!))
  return { next, gains: next.map((value, row) => value - values[row]!) }
}
