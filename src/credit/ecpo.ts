import { number, scheduled } from "../options/field.ts"
import { without } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import { denseIds } from "../util/dense-ids.ts"
import { largestReward } from "../util/largest-reward.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { gigpoVariant } from "./gigpo-variant.ts"
import { keysOf, stepKey } from "./of-steps.ts"
import { gigpoFields } from "./options.ts"
import { payPenalties } from "./penalties.ts"
import { discountedReturns } from "./returns.ts"
import { groupStatistics } from "./statistics.ts"

/** Options of `ecpo`. */
export const ecpoFields = {
  ...without(gigpoFields, "similarity", "stepScope", "whiten"),
  action: stepKey(
    undefined,
    "Canonical action of a step: steps in a state with equal actions share their return. The name of a metric of steps, or in programs a " +
      "function of a step.",
    "the action that was parsed from the completion",
  ),
  kappa: scheduled(
    number(2, "Weight κ of the state's mean in the return of an action, in visits; at least 0.", {
      min: 0,
      max: largestReward,
    }),
  ),
  tau: scheduled(
    number(4, "Visits τ of a state in the factor tanh(n / τ) of its step advantages; above 0.", {
      above: 0,
      max: largestReward,
    }),
  ),
}

/** Options of `ecpo`. */
export type EcpoOptions = OptionsOf<typeof ecpoFields>

/**
 * ECPO estimator (arXiv 2606.05885, by summaries): GiGPO whose step advantage compares actions instead of single returns. In an anchor state
 * s with n visits and mean return μ, an action u with n_u visits and mean return Ḡ_u counts as
 *
 *     μ̃_u = (n_u Ḡ_u + κ μ) / (n_u + κ);  A = A^E + ω ρ(s) norm(μ̃ of the step's action among the visits of s)
 *     ρ(s) = tanh(n / τ) B / (B + W + ε)
 *
 * B and W are the variances of returns between and within the actions of s. Steps in a state that was visited once, or with one action
 * only, have A^E alone. τ, ε and the visits as the set of the normalization are our interpretation. The details are those of GiGPO.
 *
 * @throws BAD_ARGUMENT for an invalid option, or steps without actions
 */
export const ecpo = defineEstimator({
  name: "ecpo",
  fields: ecpoFields,
  about: {
    system: "ECPO (Evidence-Calibrated PO)",
    origin: "successor",
    changes: ["credit"],
    equation:
      "A = A^E + ω ρ norm((n_u mean_u + κ μ) / (n_u + κ)) per state, u the action; ρ = tanh(n / τ) B / (B + W + ε), variances between and within actions",
    source: "arXiv 2606.05885, by summaries",
    status: "interpreted",
    note: "The equations are those of two summaries; there is no public code. τ and ε, and the normalization over visits instead of actions, are our choice.",
  },
  make(options: EcpoOptions = {}): Estimator<StepCredit> {
    return gigpoVariant("ecpo", options, ecpoFields, "wanted", ({ action, kappa, tau, omega, ...settings }, plain) => {
      const keys = keysOf(action ?? (({ action }) => action), plain, "ecpo")
      const actions = denseIds(keys.map((key, row) => `${plain.anchorGroups[row]} ${key}`))
      // A penalty that is placed in the reward is already included in the rewards of a part's batch.
      const scores = ({ rewards, episode }: Batch) =>
        payPenalties(plain, settings).score(discountedReturns(rewards, settings.gamma, episode))
      return {
        ...settings,
        levels: (batch) => [
          { ids: batch.anchorGroups, values: calibrated(scores(batch), batch.anchorGroups, actions, kappa) },
        ],
        combine: (episode, [level], batch) => {
          const trust = reliability(scores(batch), batch.anchorGroups, actions, tau, settings.epsilon)
          return episode.map((value, row) => value + omega * trust[row]! * level![row]!)
        },
      }
    })
  },
})

/** Return of each step's action, shrunk towards the mean of its state, [steps]. */
function calibrated(returns: Float64Array, states: Int32Array, actions: Int32Array, kappa: number): Float64Array {
  const [state, action] = [groupStatistics(returns, states), groupStatistics(returns, actions)]
  return returns.map((_, row) => {
    const [n, own] = [action.size[actions[row]!]!, action.mean[actions[row]!]!]
    return (n * own + kappa * state.mean[states[row]!]!) / (n + kappa)
  })
}

/** Factor ρ of each step's state, [steps]. */
function reliability(
  returns: Float64Array,
  states: Int32Array,
  actions: Int32Array,
  tau: number,
  epsilon: number,
): Float64Array {
  const [state, action] = [groupStatistics(returns, states), groupStatistics(returns, actions)]
  const between = new Float64Array(state.size.length)
  const within = new Float64Array(state.size.length)
  for (const [row, value] of returns.entries()) {
    const [s, u] = [states[row]!, actions[row]!]
    between[s]! += (action.mean[u]! - state.mean[s]!) ** 2 / state.size[s]!
    within[s]! += (value - action.mean[u]!) ** 2 / state.size[s]!
  }
  return returns.map((_, row) => {
    const s = states[row]!
    return (Math.tanh(state.size[s]! / tau) * between[s]!) / (between[s]! + within[s]! + epsilon)
  })
}
