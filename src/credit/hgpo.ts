import { flag, number, oneOf, scheduled, whole } from "../options/field.ts"
import { without } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { gigpoVariant } from "./gigpo-variant.ts"
import { historyLevels } from "./history-levels.ts"
import { normalizer } from "./normalizer.ts"
import { gigpoFields } from "./options.ts"

/** Options of `hgpo`. */
export const hgpoFields = {
  ...without(gigpoFields, "omega", "similarity", "stepScope", "normalization"),
  history: whole(
    2,
    "States before the present one that the longest history goes back, at least 0; published: 2 or 4.",
    {
      least: 0,
    },
  ),
  weighting: oneOf(
    "k+1",
    ["k+1", "k"],
    "What the weight of a history of k states, the present one among them, is a power of: k + 1 (verl-agent's recipe) or k (the " +
      "authors' first code).",
  ),
  alpha: scheduled(number(1, "That power, at least 0; 0 weighs all histories alike.", { least: 0 })),
  weightEpsilon: number(1e-6, "Added to the sum of the weights that they are divided by, at least 0.", { least: 0 }),
  baseGroup: flag(false, "Whether the episode's advantage is one more item of the mean, as the history of 0 states."),
  normalization: oneOf(
    "std",
    ["std", "none"],
    "Whether values are divided by their group's standard deviation plus epsilon, or only compared with its mean.",
  ),
  deviation: oneOf(
    "population",
    ["population", "sample"],
    "Which deviation steps are divided by: of n values, or of n - 1. The base group's is of n - 1.",
  ),
}

export type HgpoOptions = OptionsOf<typeof hgpoFields>

/**
 * Hierarchy-of-groups policy optimization (HGPO, arXiv 2602.22817): steps of a task from the same state are compared once for every
 * history that they share, A = Σ_k w_k a_k / (Σ_k w_k + ε), a_k the return compared among the steps with the same last k states,
 * k = 1 … history + 1, w_k = (k + 1)^α. What is exactly 0, as of a step that is alone, is in neither sum; without items A = 0.
 *
 * @throws BAD_ARGUMENT for an option that has no meaning
 */
export function hgpo(options: HgpoOptions = {}): Estimator<StepCredit> {
  return gigpoVariant("hgpo", options, hgpoFields, "wanted", (settings) => {
    const { history, weighting, alpha, weightEpsilon, baseGroup, deviation, ...given } = settings
    const { normalization, epsilon } = given
    const weight = (k: number) => (weighting === "k" ? k : k + 1) ** alpha
    return {
      ...given,
      levels: historyLevels(history),
      normalize: normalizer({ std: normalization === "std" ? deviation : "none", epsilon }),
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
}
