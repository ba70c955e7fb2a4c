import { withDefaults } from "../options/defaults.ts"
import { list, number, oneOf, required, scheduled, string } from "../options/field.ts"
import { without } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { gigpoVariant } from "./gigpo-variant.ts"
import { gigpoFields } from "./options.ts"
import { type Arrivals, flowValues, type StateGraph, stateGraph } from "./state-graph.ts"

/** Options of `rewardFlow`. */
export const rewardFlowFields = {
  ...withDefaults(without(gigpoFields, "gamma"), { normalization: "none" }),
  gamma: scheduled(
    number(0.9, "Discount factor of a state's value per step backward, in (0, 1].", { above: 0, max: 1 }),
  ),
  arrivals: oneOf<Arrivals, Arrivals, string>(
    "largest",
    ["largest", "first"],
    "Reward of a state that was reached with several rewards: the largest, or the first, which depends on the order " +
      "of episodes (the authors' code). Initial states have the reward 0.",
  ),
  idleActions: list(
    ["look", "inventory"],
    required(string(undefined, "")),
    "Actions without effect, even if the observation changes: they are no edges between states.",
  ),
}

/** Options of `rewardFlow`. */
export type RewardFlowOptions = OptionsOf<typeof rewardFlowFields>

/**
 * RewardFlow estimator (arXiv 2603.18859): GiGPO with the step signal V(s') - V(s) on the graph of the task's states. V(s) = max(r(s), γ
 * max V(successors of s)), with r(s) the reward on arrival at s. The signal of a step that leads to no state of the graph (idle action, or
 * unknown next state) is its reward. F_norm is 1, as published. Singletons have no step advantage.
 *
 * @throws BAD_ARGUMENT for an invalid option, or where no step has a next state
 */
export const rewardFlow = defineEstimator({
  name: "reward-flow",
  fields: rewardFlowFields,
  about: {
    system: "RewardFlow",
    origin: "relative",
    changes: ["credit", "reward"],
    equation:
      "step signal V(s') - V(s), V(s) = max(r(s), γ max V(successors)) on the state graph of the task; then GiGPO",
    source: "arXiv 2603.18859",
    status: "exact",
    note: "For states reached with several rewards, the original code uses the first: `arrivals: first`.",
  },
  make(options: RewardFlowOptions = {}): Estimator<StepCredit> {
    return gigpoVariant("reward-flow", options, rewardFlowFields, "wanted", (settings) => {
      const { gamma, arrivals, idleActions, ...given } = settings
      const signal = (batch: Batch) => gains(batch, stateGraph(batch, { arrivals, idleActions }), gamma)
      return { ...given, signal }
    })
  },
})

function gains(batch: Batch, graph: StateGraph, gamma: number): Float64Array {
  if (batch.length > 0 && batch.nextAnchors.every((anchor) => anchor === undefined))
    throw new GigpoError(
      "BAD_ARGUMENT",
      "reward-flow: no step has a nextAnchor; give each step the anchor state that it led to.",
    )
  const values = flowValues(graph, gamma)
  return batch.rewards.map((reward, row) => {
    const to = graph.to[row]!
    return to < 0 ? reward : values[to]! - values[graph.from[row]!]!
  })
}
