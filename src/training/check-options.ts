import type { Estimator } from "../credit/estimator.ts"
import { GigpoError } from "../util/errors.ts"
import { batchProblem } from "./batching.ts"
import type { ResolvedTrainOptions } from "./options.ts"

/**
 * Checks combinations of options.
 *
 * @throws GigpoError `BAD_ARGUMENT` for the first invalid combination.
 */
export function checkTogether(options: ResolvedTrainOptions): void {
  const wrong = batchProblem(options) ?? problemOf(options)
  if (wrong !== undefined) throw new GigpoError("BAD_ARGUMENT", `train: ${wrong}`)
}

/**
 * Checks that the group size suits the estimator. Warns if the estimator learns little from groups of one episode.
 *
 * @throws GigpoError `BAD_ARGUMENT` if the estimator learns nothing from groups of one episode.
 */
export function checkGroups(
  { name, groups }: Estimator,
  { groupSize }: Pick<ResolvedTrainOptions, "groupSize">,
  onWarning?: (message: string) => void,
): void {
  if (groupSize > 1 || groups === undefined) return
  const advice =
    'Set groupSize to 2 or more, or use an estimator that does not compare episodes ("reinforce-plus-plus", "remax").'
  if (groups === "needed")
    throw new GigpoError(
      "BAD_ARGUMENT",
      `train: the estimator ${name} compares the episodes of a task and learns nothing from a single episode (groupSize is 1). ${advice}`,
    )
  onWarning?.(
    `The estimator ${name} compares the episodes of a task and learns little from a single episode (groupSize is 1). ${advice}`,
  )
}

/**
 * Checks that the engine has snapshots if rollouts run during updates.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an engine without.
 */
export function checkSnapshots(
  { maxStaleness }: Pick<ResolvedTrainOptions, "maxStaleness">,
  hasSnapshots: boolean,
): void {
  if (maxStaleness === 0 || hasSnapshots) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    "train: maxStaleness 1 needs an engine that samples from a snapshot of its weights while it trains. This one samples and trains with the " +
      "same weights on one device: set maxStaleness to 0, or train on a remote engine (engine.url, for example of gigpo engine).",
  )
}

function problemOf(options: ResolvedTrainOptions): string | undefined {
  const { rolloutCorrection, oldLogProbs, overlong, rollout, groupSize, dynamicSampling, maxStaleness } = options
  if (rolloutCorrection && oldLogProbs !== "recomputed")
    return (
      "rolloutCorrection needs recomputed log-probabilities, since ratios to the sampler's log-probabilities include the correction: set " +
      'oldLogProbs to "recomputed", or leave rolloutCorrection out.'
    )
  if (
    rolloutCorrection &&
    typeof rolloutCorrection.dropBelow === "number" &&
    typeof rolloutCorrection.dropAbove === "number"
  ) {
    const { dropBelow, dropAbove } = rolloutCorrection
    if (dropBelow > dropAbove)
      return `rolloutCorrection.dropBelow is ${dropBelow} and dropAbove is ${dropAbove}, which drops all tokens; dropBelow must be at most dropAbove.`
  }
  if (overlong && overlong.cache > rollout.maxCompletionTokens)
    return `overlong.cache is ${overlong.cache}, but completions have at most ${rollout.maxCompletionTokens} tokens (rollout.maxCompletionTokens); lower overlong.cache.`
  if (maxStaleness > 0) {
    const stale = stalenessProblem(options)
    if (stale !== undefined) return stale
  }
  const { loss, expertData } = options
  const imitates = "name" in loss && loss.name === "chord"
  if (imitates && !expertData)
    return "the loss chord learns from steps of an expert: set expertData.tasks, or use another loss."
  if (expertData && "name" in loss && !imitates)
    return "expertData has no effect without the loss chord: set loss.name to chord, or leave expertData out."
  const unscored = expertData
    ? "expertData has steps"
    : "name" in loss && loss.name === "echo" && "the loss echo has tokens"
  if (unscored && (loss.klWeight !== 0 || loss.teacherWeight !== 0 || options.privileged))
    return `${unscored} without scores of a reference or a teacher: set loss.klWeight and loss.teacherWeight to 0, and leave privileged out.`
  if (rollout.minGroupSize > groupSize)
    return `rollout.minGroupSize is ${rollout.minGroupSize}, but groups have ${groupSize} episodes (groupSize).`
  if (dynamicSampling && groupSize < 2)
    return "dynamicSampling compares the episodes of a group: set groupSize to 2 or more."
  return undefined
}

/** Losses that are correct for tokens of the current weights only. */
const onPolicy = ["reinforce", "distillation"]

/** Message about options that leave the staleness of a one-step-off rollout uncorrected, or undefined. */
function stalenessProblem({ rolloutCorrection, oldLogProbs, loss }: ResolvedTrainOptions): string | undefined {
  const why = "maxStaleness 1 samples with weights that are one iteration old"
  if (oldLogProbs === "recomputed" && !rolloutCorrection)
    return `${why}, and ratios to recomputed log-probabilities leave that uncorrected: set rolloutCorrection to {}, or oldLogProbs to "sampled".`
  if ("name" in loss && onPolicy.includes(loss.name) && !rolloutCorrection)
    return (
      `${why}, and the loss ${loss.name} has no ratio to correct that: set oldLogProbs to "recomputed" and rolloutCorrection to {}, choose another ` +
      "loss, or set maxStaleness to 0."
    )
  return undefined
}
