import { number, oneOf, scheduled } from "../options/field.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { largestReward } from "../util/largest-reward.ts"
import { gainField, peerTurns } from "./a2tgpo.ts"
import { groupByAnchor } from "./anchors.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { normalizer } from "./normalizer.ts"
import { numbersOf } from "./of-steps.ts"
import { outcomeFields, settle } from "./options.ts"
import { paidEstimator } from "./paid-estimator.ts"
import { discountedReturns, episodeReturns } from "./returns.ts"
import { stepsAfter, turnsOf } from "./turns.ts"

/** Options of `igpo`. */
export const igpoFields = {
  gain: gainField,
  gamma: scheduled(number(1, "Discount factor of the rewards of later turns, in (0, 1].", { above: 0, max: 1 })),
  groupBy: oneOf(
    "turn",
    ["turn", "separate", "joint"],
    "Rewards that a turn is compared with, in the episodes of its task: those of the same turn index, those of the same kind (gains or answers), or all.",
  ),
  normalization: oneOf(
    "none",
    ["none", "population", "sample"],
    "Divisor of the distance from their mean: 1, or the standard deviation of the population (n) or the sample (n - 1) plus epsilon.",
  ),
  epsilon: number(1e-6, "Constant added to the standard deviation, at least 0.", { min: 0, max: largestReward }),
  invalidActionPenalty: outcomeFields.invalidActionPenalty,
}

/** Options of `igpo`. */
export type IgpoOptions = OptionsOf<typeof igpoFields>

/**
 * Information-gain policy optimization (IGPO, GuoqingWang1/IGPO): the reward of a turn is its information gain, except for the answering
 * turn (the last one, unless the episode was truncated). The last turn also has the return of the episode. A_t = Σ_{j≥t} γ^(j-t) (r_j -
 * mean) / F_norm. The default follows the first code of the authors, which compares turns by position and does not divide. Their later
 * code normalizes all rewards of a task together, or each kind, by the standard deviation.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const igpo = defineEstimator({
  name: "igpo",
  fields: igpoFields,
  about: {
    system: "IGPO",
    origin: "relative",
    changes: ["credit", "reward"],
    equation: "A_t = Σ_{j≥t} γ^(j-t) (r_j - mean r of the same turn), r the gain, for the last turn the return",
    source: "GuoqingWang1/IGPO, its code",
    set: { "training.rolloutHooks.name": "information-gain" },
    environments: ["search", "sql"],
    status: "exact",
    note: "The probe is the hook `information-gain`. The return is the environment's reward; the authors use F1.",
  },
  make(options: IgpoOptions = {}): Estimator<StepCredit> {
    const settingsAt = (progress: TrainingProgress) => settle("igpo", options, igpoFields, progress)
    return paidEstimator("igpo", settingsAt, { groups: "wanted" }, async (batch, settings, context) => {
      const { gain, gamma, groupBy, normalization, epsilon } = settings
      const gains = await numbersOf(gain, batch, context, "igpo")
      const isGain = peerTurns(batch, gains).map((id) => (id < 0 ? 0 : 1))
      const [returns, after] = [episodeReturns(batch.rewards, batch.episode), stepsAfter(batch.episode)]
      const rewards = returns.map(
        (outcome, row) => (isGain[row] === 1 ? gains[row]! : 0) + (after[row]! < 0 ? outcome : 0),
      )
      const z = normalizer({ std: normalization, epsilon })(rewards, peersOf(batch, groupBy, isGain))
      return { advantages: discountedReturns(z, gamma, batch.episode), details: { turnRewards: rewards } }
    })
  },
})

function peersOf({ task, episode }: Batch, compare: "turn" | "separate" | "joint", isGain: Int32Array): Int32Array {
  if (compare === "joint") return task
  return groupByAnchor(task, compare === "turn" ? turnsOf(episode) : isGain)
}
