import { number, oneOf, scheduled } from "../options/field.ts"
import type { OptionsOf } from "../options/table.ts"
import { largestReward } from "../util/largest-reward.ts"
import { groupByAnchor } from "./anchors.ts"
import { defineEstimator } from "./define-estimator.ts"
import { episodeMetrics } from "./diagnostics.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { episodeLevel } from "./grpo.ts"
import { normalizer } from "./normalizer.ts"
import { numbersOf, stepNumbers } from "./of-steps.ts"
import { grpoFields, outsideRuns, settle } from "./options.ts"
import { groupsOf } from "./outcomes.ts"
import { discountedReturns } from "./returns.ts"
import { stepsAfter, turnsOf } from "./turns.ts"

/** Option for the information gain of a turn. */
export const gainField = stepNumbers(
  "information-gain",
  "Information gain of a turn, P(answer) after the turn minus P(answer) before: the name of a metric of steps, or in programs a " +
    "function of the batch (`informationGains`).",
)

/** Options of `a2tgpo`. */
export const a2tgpoFields = {
  gain: gainField,
  gamma: scheduled(number(1, "Discount factor of the gains of later turns, in (0, 1].", { above: 0, max: 1 })),
  gainWeight: scheduled(
    number(0.3, "Weight of the gains relative to the outcome, at least 0.", { min: 0, max: largestReward }),
  ),
  clipWeight: scheduled(
    number(0.3, "Strength with which the gain of a turn scales its clip range, in [0, 1].", { min: 0, max: 1 }),
  ),
  std: oneOf(
    "population",
    ["population", "sample", "none"],
    "Standard deviation that gains are divided by, plus epsilon: of the population (n), of the sample (n - 1), or none.",
  ),
  ...grpoFields,
}

/** Options of `a2tgpo`. */
export type A2tgpoOptions = OptionsOf<typeof a2tgpoFields>

/**
 * A²TGPO estimator (arXiv 2605.06200): A_t = A(τ) + w D_t. A(τ) is the outcome advantage as in `grpo`. D_t = Σ_{j≥t} γ^(j-t) z_j / √n_t
 * over the n_t turns from t on. z_t is the gain of the turn, normalized over the turns with the same index in the episodes of the task.
 * The clip range is scaled by 1 + c (2σ(z_t) - 1). Two kinds of turns get the outcome advantage alone: the answering turn (the last one of
 * an episode that was not truncated) and turns without a gain.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const a2tgpo = defineEstimator({
  name: "a2tgpo",
  fields: a2tgpoFields,
  about: {
    system: "A²TGPO",
    origin: "successor",
    changes: ["credit", "step-groups", "loss"],
    equation:
      "A = A^E + 0.3 Σ_{j≥t} γ^(j-t) z_j / √n_t; clip ranges times 1 + 0.3 (2σ(z_t) - 1); z normalized gains of the same turn",
    source: "arXiv 2605.06200, as quoted by others",
    set: { "training.loss.importanceSamplingLevel": "sequence", "training.rolloutHooks.name": "information-gain" },
    environments: ["search", "sql"],
    status: "interpreted",
    note: "The authors' code was read only where others quote it; its standard deviation is unknown. Gains: the hook `information-gain`, or any metric of the steps.",
  },
  make(options: A2tgpoOptions = {}): Estimator<StepCredit> {
    return {
      name: "a2tgpo",
      groups: groupsOf(settle("a2tgpo", options, a2tgpoFields, outsideRuns)),
      async estimate(batch, context) {
        const settings = settle("a2tgpo", options, a2tgpoFields, context.progress)
        const { gain, gamma, gainWeight, clipWeight, std, epsilon } = settings
        const { advantages: outcomes, ...groups } = episodeLevel(batch, settings)
        const gains = await numbersOf(gain, batch, context, "a2tgpo")
        const ids = peerTurns(batch, gains)
        const z = normalizer({ std, epsilon })(gains, ids)
        const counts = discountedReturns(
          Float64Array.from(ids, (id) => (id < 0 ? 0 : 1)),
          1,
          batch.episode,
        )
        const later = discountedReturns(z, gamma, batch.episode)
        const credit = later.map((sum, row) => (ids[row]! < 0 ? 0 : sum / Math.sqrt(counts[row]!)))
        return {
          advantages: outcomes.map((value, row) => value + gainWeight * credit[row]!),
          clipScale: z.map((value, row) => (ids[row]! < 0 ? 1 : 1 + clipWeight * (2 / (1 + Math.exp(-value)) - 1))),
          metrics: episodeMetrics(groups),
          details: {
            gains: gains.map((one) => (Number.isNaN(one) ? 0 : one)),
            normalizedGains: z,
            gainReturns: credit,
          },
        }
      },
    }
  },
})

/** Dense ids of the turns with the same index in the episodes of one task, [steps]; -1 for answering turns and for turns without a gain. */
export function peerTurns(batch: Batch, gains: Float64Array): Int32Array {
  const after = stepsAfter(batch.episode)
  const isPeer = (row: number) => !Number.isNaN(gains[row]!) && (after[row]! >= 0 || batch.truncated[row] === 1)
  return groupByAnchor(batch.task, turnsOf(batch.episode)).map((id, row) => (isPeer(row) ? id : -1))
}
