import { number, scheduled } from "../options/field.ts"
import type { OptionsOf } from "../options/table.ts"
import { wrapEstimator } from "./as-estimator.ts"
import { changeAdvantages, learnedSteps, meanAdvantage } from "./change-advantages.ts"
import { defineEstimator } from "./define-estimator.ts"
import { meanEntropies } from "./entropies.ts"
import type { Estimator } from "./estimator.ts"
import { innerEstimator, ofFields } from "./of-estimator.ts"
import { outsideRuns, settle } from "./options.ts"
import { groupStatistics } from "./statistics.ts"
import { stepsAfter } from "./turns.ts"

/** Options of `empg`. */
export const empgFields = {
  ...ofFields,
  sharpness: scheduled(
    number(1, "Strength k with which steps of high entropy are weighted down, at least 0.", {
      min: 0,
    }),
  ),
  clarity: scheduled(
    number(0.05, "Weight ζ of the bonus for a next step of low entropy, at least 0. Published values: 0.05 and 0.1.", {
      min: 0,
    }),
  ),
  claritySharpness: scheduled(number(1, "Rate k_f at which the bonus falls with the entropy, at least 0.", { min: 0 })),
  epsilon: number(1e-8, "Constant added to the range of the entropies, at least 0.", { min: 0 }),
}

/** Options of `empg`. */
export type EmpgOptions = OptionsOf<typeof empgFields>

/**
 * Entropy-modulated policy gradients (EMPG, arXiv 2509.09265) around another estimator: A'_t = g_t A_t + ζ e^(-k_f h_{t+1}), minus the
 * mean over the steps of the batch. h is the mean entropy of a step's tokens, scaled to [0, 1] over the batch. g is e^(-k h) divided by
 * its mean. The last step of an episode has no bonus. Skipped steps enter none of these numbers. Advantages per token are each changed
 * with the numbers of their step, and the mean is then over tokens. The details contain h and g as `unitEntropies` and `entropyScales`,
 * [steps]. The bonus does not depend on rewards: where all rewards are equal, only the bonus is in the advantage.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const empg = defineEstimator({
  name: "empg",
  fields: empgFields,
  about: {
    system: "EMPG",
    origin: "relative",
    changes: ["credit"],
    equation: "A' = A g(h_t) + ζ e^(-k h_{t+1}) minus the mean, g = e^(-k h) / mean, h step entropies scaled to 0 … 1",
    source: "arXiv 2509.09265, by two implementations of others",
    status: "interpreted",
    note: "The authors' code was not read, and the two implementations have different weights of the bonus. Modifies any estimator: `estimator: { name: grpo }`.",
  },
  make(options: EmpgOptions = {}): Estimator {
    const { estimator } = settle("empg", options, empgFields, outsideRuns)
    return wrapEstimator(innerEstimator("empg", estimator), {
      name: "empg",
      needs: ["entropy"],
      change(credit, batch, { progress }) {
        const { sharpness, clarity, claritySharpness, epsilon } = settle("empg", options, empgFields, progress)
        const learned = learnedSteps(credit, batch.length)
        const h = toUnit(meanEntropies(batch, "empg"), learned, epsilon)
        const g = h.map((entropy) => Math.exp(-sharpness * entropy))
        const middle = groupStatistics(g, new Int32Array(batch.length), learned).mean[0]!
        const after = stepsAfter(batch.episode)
        const bonus = Float64Array.from(after, (row) => (row < 0 ? 0 : clarity * Math.exp(-claritySharpness * h[row]!)))
        const changed = changeAdvantages(credit, (advantage, step) => (advantage * g[step]!) / middle + bonus[step]!)
        const mean = meanAdvantage(changed, learned)
        const details = { ...credit.details, unitEntropies: h, entropyScales: g.map((scale) => scale / middle) }
        return { ...changeAdvantages(changed, (advantage) => advantage - mean), details }
      },
    })
  },
})

/** Values scaled to (x - minimum) / (maximum - minimum + ε), with minimum and maximum over the steps that are trained on. */
function toUnit(values: Float64Array, learned: Uint8Array, epsilon: number): Float64Array {
  const [least, most] = values.reduce(
    ([low, high], value, row) => (learned[row] === 1 ? [Math.min(low!, value), Math.max(high!, value)] : [low!, high!]),
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  )
  return values.map((value) => (most === least ? 0 : (value - least!) / (most! - least! + epsilon)))
}
