import { boolean, integer, number, oneOf, scheduled } from "../options/field.ts"
import { without } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { gigpoVariant } from "./gigpo-variant.ts"
import { historyLevels } from "./history-levels.ts"
import { normalizer } from "./normalizer.ts"
import { gigpoFields } from "./options.ts"

/** Options of `hgpo`. */
export const hgpoFields = {
  ...without(gigpoFields, "omega", "similarity", "stepScope", "normalization"),
  history: integer(2, "Number of earlier states in the longest history, at least 0. Published values: 2 and 4.", {
    min: 0,
  }),
  weighting: oneOf(
    "k+1",
    ["k+1", "k"],
    "Base of the weight of a history of k states, including the current one: k + 1 (verl-agent's recipe) or k (the " +
      "authors' first code).",
  ),
  alpha: scheduled(number(1, "Exponent of the weight, at least 0. 0 gives all histories the same weight.", { min: 0 })),
  weightEpsilon: number(1e-6, "Constant added to the sum of the weights in their normalization, at least 0.", {
    min: 0,
  }),
  baseGroup: boolean(false, "Whether the episode advantage is included in the mean, as the history of 0 states."),
  normalization: oneOf(
    "population",
    ["population", "sample", "none"],
    "F_norm of steps: the standard deviation of the population (n) or of the sample (n - 1), each plus epsilon, or 1. That of the base group " +
      "is the sample's, or 1.",
  ),
}

/** Options of `hgpo`. */
export type HgpoOptions = OptionsOf<typeof hgpoFields>

/**
 * Hierarchy-of-groups policy optimization (HGPO, arXiv 2602.22817). Steps of a task in the same state are compared once for each length of
 * shared history: A = Σ_k w_k a_k / (Σ_k w_k + ε), k = 1 … history + 1, w_k = (k + 1)^α. a_k is the return compared among the steps with
 * the same last k states. Levels with a_k exactly 0, such as that of a singleton, enter neither sum. A = 0 if no level remains.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const hgpo = defineEstimator({
  name: "hgpo",
  fields: hgpoFields,
  about: {
    system: "HGPO",
    origin: "relative",
    changes: ["step-groups", "credit"],
    equation: "A = Σ_k w_k a_k / Σ w_k, a_k among steps with the same last k states, w_k ∝ (k + 1)^α",
    source: "arXiv 2602.22817",
    status: "exact",
    note: "The other published weights, k^α: `weighting: k`.",
  },
  make(options: HgpoOptions = {}): Estimator<StepCredit> {
    return gigpoVariant("hgpo", options, hgpoFields, "wanted", (settings) => {
      const { history, weighting, alpha, weightEpsilon, baseGroup, normalization, ...given } = settings
      const { epsilon } = given
      const weight = (k: number) => (weighting === "k" ? k : k + 1) ** alpha
      return {
        ...given,
        normalization: normalization === "none" ? "none" : "sample",
        levels: historyLevels(history),
        normalize: normalizer({ std: normalization, epsilon }),
        ...(!baseGroup && { episode: ({ length }) => new Float64Array(length) }),
        combine: (episode, levels) => {
          const items = [
            ...(baseGroup ? [{ k: 0, values: episode }] : []),
            ...levels.map((values, k) => ({ k: k + 1, values })),
          ]
          return episode.map((_, row) => {
            const met = items.filter(({ values }) => values[row] !== 0)
            const sum = met.reduce((total, { k, values }) => total + weight(k) * values[row]!, 0)
            const weights = met.reduce((total, { k }) => total + weight(k), weightEpsilon)
            return sum === 0 ? 0 : sum / weights
          })
        },
      }
    })
  },
})
