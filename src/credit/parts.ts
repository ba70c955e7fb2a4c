import { type Scheduled, scheduleValue } from "../options/schedule.ts"
import { groupByAnchor, groupBySimilarity } from "./anchors.ts"
import type { Batch, EstimatorContext } from "./estimator.ts"
import type { Normalizer } from "./normalizer.ts"
import { groupByKey, type StepKey } from "./of-steps.ts"
import { checkGamma, outsideRuns } from "./options.ts"
import { discountedReturns } from "./returns.ts"
import type { SimilarityOptions } from "./types.ts"
import { withColumns } from "./with-columns.ts"

/** One way to say which steps are compared with each other. */
export interface StepLevel {
  /** The group of each step, [steps]: dense ids; -1 for a step of no group. `groupByAnchor(batch.task, keys)` makes them. */
  readonly ids: Int32Array
  /** Of this level in the sum of all. Default 1. */
  readonly weight?: number | undefined
  /** What is compared at this level, [steps]. Default: the step signal. */
  readonly values?: Float64Array | undefined
}

/**
 * What GiGPO is made of. Each part can be replaced and then stands for the option that it takes the place of; the batch that parts
 * are given has the penalty of invalid actions in its rewards, where it belongs there.
 */
export interface GigpoParts {
  /** A^E of each step, [steps]. Default: as in `grpo`. */
  episode(batch: Batch, context: EstimatorContext): Float64Array
  /** What a step is worth before it is compared, [steps]. Default: `discountedReturn(gamma)`. */
  signal(batch: Batch, context: EstimatorContext): Float64Array
  /** The step groups, coarse to fine, one level or several. Default: `anchorLevels`, or `similarityLevels` where that option is set. */
  levels(batch: Batch, context: EstimatorContext): readonly StepLevel[]
  /** How a level's values are compared within its groups. Default: `normalizer` as the option `normalization` says; singletons get 0. */
  readonly normalize: Normalizer
  /** The advantages [steps] from A^E [steps] and those of each level [levels][steps]. Default: A^E + omega Σ weight · level. */
  combine(episode: Float64Array, levels: readonly Float64Array[], batch: Batch, context: EstimatorContext): Float64Array
}

/** Eq. 5: R_t = Σ_{k≥t} γ^(k-t) r_k, as a step signal. */
export function discountedReturn(gamma: Scheduled): GigpoParts["signal"] {
  checkGamma(scheduleValue(gamma, outsideRuns))
  return (batch, { moment }) => discountedReturns(batch.rewards, scheduleValue(gamma, moment), batch.episode)
}

/** Eq. 6: one level, the steps of one task that were taken from the same state. */
export const anchorLevels: GigpoParts["levels"] = (batch) => [{ ids: batch.anchorGroups }]

/** One level, the steps of one task whose states look alike; see `groupBySimilarity`. */
export function similarityLevels(options: SimilarityOptions): GigpoParts["levels"] {
  groupBySimilarity([], [], options) // refuses what has no meaning
  return (batch) => [{ ids: groupBySimilarity(batch.task, batch.anchors, options) }]
}

/** One level, the steps of one task with equal keys of any kind: a metric of the steps, or what a function says of each. */
export function keyLevels(key: StepKey): GigpoParts["levels"] {
  return (batch) => [{ ids: groupByKey(key, batch, "keyLevels") }]
}

/** The same levels where the batch is one task: equal states of different tasks are one step group. */
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
