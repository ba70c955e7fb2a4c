import { type Scheduled, scheduleValue } from "../options/schedule.ts"
import { groupByAnchor, groupBySimilarity } from "./anchors.ts"
import type { Batch, EstimatorContext } from "./estimator.ts"
import type { Normalizer } from "./normalizer.ts"
import { groupByKey, type StepKey } from "./of-steps.ts"
import { checkGamma, outsideRuns } from "./options.ts"
import { discountedReturns } from "./returns.ts"
import type { SimilarityOptions } from "./types.ts"
import { withColumns } from "./with-columns.ts"

/** Level of step groups: a partition of the steps into groups that are compared. */
export interface StepLevel {
  /** Dense id of each step's group, [steps]; -1 for a step without a group. See `groupByAnchor`. */
  readonly ids: Int32Array
  /** Weight of the level in the sum of all levels. Default 1. */
  readonly weight?: number | undefined
  /** Values that are compared at this level, [steps]. Default: the step signal. */
  readonly values?: Float64Array | undefined
}

/**
 * Parts of GiGPO that can be replaced. A part replaces the corresponding option. The rewards of the batch that parts receive include the
 * invalid-action penalty, if it is placed in the reward.
 */
export interface GigpoParts {
  /** Returns the episode advantage A^E of each step, [steps]. Default: as in `grpo`. */
  episode(batch: Batch, context: EstimatorContext): Float64Array
  /** Returns the step signal, the value of each step that is compared, [steps]. Default: `discountedReturn(gamma)`. */
  signal(batch: Batch, context: EstimatorContext): Float64Array
  /** Returns one or more levels of step groups, coarse to fine. Default: `anchorLevels`, or `similarityLevels` with the option `similarity`. */
  levels(batch: Batch, context: EstimatorContext): readonly StepLevel[]
  /** Normalizer of the values of a level within its groups. Default: `normalizer` with the option `normalization`; singletons get 0. */
  readonly normalize: Normalizer
  /** Combines A^E, [steps], and the step advantages of all levels, [levels][steps]. Default: A^E + omega Σ weight · level. */
  combine(episode: Float64Array, levels: readonly Float64Array[], batch: Batch, context: EstimatorContext): Float64Array
}

/** Returns the discounted return R_t = Σ_{k≥t} γ^(k-t) r_k (Eq. 5 of GiGPO) as a step signal. Rewards of whole episodes do not count. */
export function discountedReturn(gamma: Scheduled): GigpoParts["signal"] {
  checkGamma(scheduleValue(gamma, outsideRuns))
  return ({ rewards, episodeRewards, episode }, { progress }) => {
    const ofSteps = episodeRewards ? rewards.map((reward, step) => reward - episodeRewards[step]!) : rewards
    return discountedReturns(ofSteps, scheduleValue(gamma, progress), episode)
  }
}

/** Level of step groups by equal anchor states of one task (Eq. 6 of GiGPO). */
export const anchorLevels: GigpoParts["levels"] = (batch) => [{ ids: batch.anchorGroups }]

/** Returns a level of step groups by similar anchor states of one task; see `groupBySimilarity`. */
export function similarityLevels(options: SimilarityOptions): GigpoParts["levels"] {
  groupBySimilarity([], [], options) // throws for invalid options
  return (batch) => [{ ids: groupBySimilarity(batch.task, batch.anchors, options) }]
}

/** Returns a level of step groups by equal keys within a task. The key is a metric of the steps, or the result of a function of a step. */
export function keyLevels(key: StepKey): GigpoParts["levels"] {
  return (batch) => [{ ids: groupByKey(key, batch, "keyLevels") }]
}

/** Returns levels across tasks: equal states of different tasks form one step group. */
export function acrossTasks(levels: GigpoParts["levels"]): GigpoParts["levels"] {
  return (batch, context) => {
    const task = new Int32Array(batch.length)
    const oneTask = {
      task,
      get anchorGroups() {
        return groupByAnchor(task, batch.anchors)
      },
    }
    return levels(withColumns(batch, oneTask), context)
  }
}
