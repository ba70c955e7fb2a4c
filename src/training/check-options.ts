import type { Estimator } from "../credit/estimator.ts"
import { GigpoError } from "../util/errors.ts"
import { batchProblem } from "./batching.ts"
import type { ResolvedTrainOptions } from "./options.ts"

/**
 * Refuses options that are fine one by one and not together.
 *
 * @throws GigpoError `BAD_ARGUMENT` with the first that is found.
 */
export function checkTogether(options: ResolvedTrainOptions): void {
  const wrong = batchProblem(options) ?? problemOf(options)
  if (wrong !== undefined) throw new GigpoError("BAD_ARGUMENT", `train: ${wrong}`)
}

/**
 * Refuses groups of one episode where the estimator says that it would learn nothing from them, and warns where it learns little.
 *
 * @throws GigpoError `BAD_ARGUMENT`
 */
export function checkGroups(
  { name, groups }: Estimator,
  { groupSize }: Pick<ResolvedTrainOptions, "groupSize">,
  onWarning?: (message: string) => void,
): void {
  if (groupSize > 1 || groups === undefined) return
  const advice = 'Set groupSize to 2 or more, or take an estimator that compares none ("reinforce-plus-plus", "remax").'
  if (groups === "needed")
    throw new GigpoError(
      "BAD_ARGUMENT",
      `train: the estimator ${name} compares the episodes of a task, and learns nothing where there is one (groupSize). ${advice}`,
    )
  onWarning?.(
    `The estimator ${name} compares the episodes of a task, and learns little where there is one (groupSize). ${advice}`,
  )
}

function problemOf(options: ResolvedTrainOptions): string | undefined {
  const { importance, oldLogProbs, overlong, rollout, groupSize, dynamicSampling } = options
  if (importance && oldLogProbs !== "recomputed")
    return (
      "importance weights are for recomputed log-probabilities, since ratios that start from the sampler's hold them already: set " +
      'oldLogProbs to "recomputed", or leave importance out.'
    )
  if (importance && typeof importance.dropBelow === "number" && typeof importance.dropAbove === "number") {
    const { dropBelow, dropAbove } = importance
    if (dropBelow > dropAbove)
      return `importance.dropBelow is ${dropBelow} and dropAbove ${dropAbove}, which drops everything.`
  }
  if (overlong && overlong.cache > rollout.maxCompletionTokens)
    return `overlong.cache is ${overlong.cache}, but replies have at most ${rollout.maxCompletionTokens} tokens (rollout.maxCompletionTokens); give fewer.`
  if (rollout.minGroupSize > groupSize)
    return `rollout.minGroupSize is ${rollout.minGroupSize}, but a group has ${groupSize} episodes (groupSize).`
  if (dynamicSampling && groupSize < 2)
    return "dynamicSampling compares the episodes of a group: set groupSize to 2 or more."
  return undefined
}
