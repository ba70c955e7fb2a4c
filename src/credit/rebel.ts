import { boolean, list, number, oneOf, required, scheduled, string } from "../options/field.ts"
import { only, without } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { largestReward } from "../util/largest-reward.ts"
import { beliefKey } from "./belief-key.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { gigpoVariant } from "./gigpo-variant.ts"
import { episodeLevel } from "./grpo.ts"
import { groupByKey, metricOf, stepKey } from "./of-steps.ts"
import { gigpoFields, outsideRuns, settle } from "./options.ts"
import { discountedReturns, episodeReturns } from "./returns.ts"
import { kindFields, renormalizeByKind } from "./task-kinds.ts"
import { turnsOf } from "./turns.ts"
import { withRewards } from "./with-columns.ts"

/** Options of both levels that are those of GiGPO. */
const levelFields = {
  ...without(gigpoFields, "gamma", "omega", "similarity", "stepScope", "whiten", "normalization"),
  normalization: oneOf("none", ["none", "sample", "population"], "F_norm of both levels, as in `gigpo`."),
}

/** Options of `rebel`. */
export const rebelFields = {
  ...levelFields,
  gamma: gigpoFields.gamma,
  omega: scheduled(number(0.5, "Weight ω of the step advantage, at least 0.", { min: 0, max: largestReward })),
  belief: stepKey(
    undefined,
    "Belief of the policy at a step: steps of a task with equal beliefs are compared. The name of a metric of steps, or in " +
      "programs a function of a step.",
    "`beliefKey` of the text between <belief> tags of the completion",
  ),
  beliefRewards: list(
    ["belief-state", "belief-task", "belief-prediction", "belief-format"],
    required(string(undefined, "")),
    "Metrics of steps that reward beliefs.",
  ),
  beliefWeights: list(
    [0.4, 0.3, 0.2, 0.1],
    required(number(undefined, "")),
    "Weights of beliefRewards, in their order.",
  ),
  beliefInReward: boolean(
    true,
    "Whether the rewards of steps include the belief rewards, as in the authors' code. These are then subtracted from the return of the " +
      "episode to get its outcome.",
  ),
  ...kindFields,
}

/** Options of `rebel`. */
export type RebelOptions = OptionsOf<typeof rebelFields>

/**
 * ReBel estimator (arXiv 2605.20061): steps are compared where the policy states the same belief. There are two reward channels: b_t = Σ
 * w_k of the belief rewards, and G = R(τ) - Σ b_t. A = A^E + ω A^S. A^E is G normalized over the episodes of the task. A^S =
 * norm(γ^(T-1-t) G) + norm(Σ_{k≥t} γ^(k-t) b_k), each over the steps of the task with the same belief; 0 for a belief that occurs once.
 * With `kind` the advantages are then normalized separately for each kind of task.
 *
 * @throws BAD_ARGUMENT for an invalid option, or where the number of weights differs from the number of rewards
 */
export const rebel = defineEstimator({
  name: "rebel",
  fields: rebelFields,
  about: {
    system: "ReBel (Rewarding Beliefs)",
    origin: "successor",
    changes: ["step-groups", "reward", "credit"],
    equation: "A = G - mean G + ω (norm(γ^(T-1-t) G) + norm(Σ γ^(k-t) b_k)) among steps with the same belief",
    source: "arXiv 2605.20061; Fateyetian/Rebel",
    set: {
      "training.estimator.beliefInReward": false,
      "training.rolloutHooks.name": "belief-rewards",
      "environment.memory": "belief-state",
    },
    environments: ["alfworld", "webshop"],
    status: "exact",
    note: "In WebShop also `environment.memory.domain=shop`. Phases of the belief key come from the actions before the step; the authors take those after it. The wording of the prompt is ours. The policy needs SFT to state beliefs.",
  },
  make(options: RebelOptions = {}): Estimator<StepCredit> {
    const { beliefRewards, beliefWeights, singletonEpisode } = settle("rebel", options, rebelFields, outsideRuns)
    if (beliefRewards.length !== beliefWeights.length)
      throw new GigpoError(
        "BAD_ARGUMENT",
        `rebel: there are ${beliefWeights.length} beliefWeights for ${beliefRewards.length} beliefRewards; give one each.`,
      )
    const groups = singletonEpisode === "zero" ? "wanted" : undefined
    return gigpoVariant("rebel", options, rebelFields, groups, (settings, plain) => {
      const { belief = beliefKey, beliefRewards, beliefWeights, beliefInReward, gamma, omega } = settings
      const [both, kinds] = [only(settings, levelFields), only(settings, kindFields)]
      const beliefs = beliefSum(plain, beliefRewards, beliefWeights)
      const outcome = (reward: number, row: number) => (beliefInReward ? reward - beliefs[row]! : reward)
      const outcomes = (batch: Batch) => withRewards(batch, batch.rewards.map(outcome))
      const inReward = both.penaltyPlacement === "reward"
      const ids = groupByKey(belief, plain, "rebel")
      return {
        ...both,
        // A penalty that is placed in the reward is already included in these rewards.
        episode: (batch) =>
          episodeLevel(outcomes(batch), { ...both, ...(inReward && { invalidActionPenalty: 0 }) }).advantages,
        signal: (batch) => fromTheEnd(outcomes(batch), gamma),
        levels: ({ episode }) => [{ ids }, { ids, values: discountedReturns(beliefs, gamma, episode) }],
        combine: (episode, levels, batch) => {
          const joint = episode.map((value, row) => value + omega * levels.reduce((sum, level) => sum + level[row]!, 0))
          return renormalizeByKind(joint, batch, kinds, both.epsilon, "rebel")
        },
      }
    })
  },
})

/** Discounted outcome γ^(T-1-t) G of each step. */
function fromTheEnd({ rewards, episode }: Batch, gamma: number): Float64Array {
  const turns = turnsOf(episode)
  const last = new Map<number, number>()
  for (const [row, turn] of turns.entries()) last.set(episode[row]!, turn)
  return episodeReturns(rewards, episode).map((value, row) => gamma ** (last.get(episode[row]!)! - turns[row]!) * value)
}

function beliefSum(batch: Batch, names: readonly string[], weights: readonly number[]): Float64Array {
  const columns = names.map((name) => metricOf(batch, name, "rebel", 0))
  return batch.rewards.map((_, row) => columns.reduce((sum, column, k) => sum + weights[k]! * column[row]!, 0))
}
