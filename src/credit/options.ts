import { boolean, number, oneOf, orObject, required, scheduled } from "../options/field.ts"
import type { fieldsOf, Named } from "../options/named.ts"
import { readOptions } from "../options/read.ts"
import { type ScheduledValues, scheduleValues, type TrainingProgress } from "../options/schedule.ts"
import type { Choice, CustomValue, OptionFields, OptionsOf, ResolvedOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { largestReward } from "../util/largest-reward.ts"
import { estimatorProblem } from "./as-estimator.ts"
import type { Estimator } from "./estimator.ts"

/** Options of every estimator that compares whole episodes of a task. */
export const outcomeFields = {
  episodeStatistics: oneOf(
    "episodes",
    ["episodes", "steps"],
    "Items of the mean and standard deviation of returns (Eq. 3 of GiGPO): the episodes of the task (the paper), or their steps, so that long " +
      "episodes weigh more (verl-agent).",
  ),
  singletonEpisode: oneOf(
    "zero",
    ["zero", "raw"],
    "Advantage of a return without others to compare with: 0, or the return itself (verl-agent).",
  ),
  invalidActionPenalty: scheduled(
    number(0, "Invalid-action penalty per invalid step, at least 0, in units of reward.", {
      min: 0,
      max: largestReward,
    }),
  ),
  penaltyPlacement: oneOf(
    "reward",
    ["reward", "step"],
    "Placement of the penalty: in the reward of the step, and so in the returns of its episode and of earlier steps (the paper), " +
      "or only in the scores of the invalid step (verl-agent).",
  ),
}

/** Options of the episode level. The defaults are the paper's (arXiv 2505.10978). */
export const grpoFields = {
  normalization: oneOf(
    "sample",
    ["sample", "population", "none", "leaveOneOut"],
    "F_norm, the divisor of the distance from the group mean: the standard deviation of the sample (n - 1) or of the " +
      'population (n), each plus epsilon, 1 ("none"), or (n - 1) / n, which makes it the distance from the mean of the others ' +
      '("leaveOneOut", RLOO).',
  ),
  epsilon: number(1e-6, "Constant added to the standard deviation, at least 0.", { min: 0, max: largestReward }),
  ...outcomeFields,
}

const share = { above: 0, max: 1 } as const

/** Options of `groupBySimilarity`. */
export const similarityFields = {
  threshold: required(
    number(
      undefined,
      "Minimum ratio of Python's difflib.SequenceMatcher of the members of a group to its first member, in (0, 1].",
      share,
    ),
  ),
  autojunk: boolean(
    true,
    "Whether to ignore very frequent characters of long texts as starting points, as CPython does.",
  ),
}

/** Options of both levels. The defaults are the paper's. */
export const gigpoFields = {
  gamma: scheduled(number(0.95, "Discount factor γ of the step returns, in (0, 1].", share)),
  omega: scheduled(number(1, "Weight ω of the step advantage, at least 0.", { min: 0, max: largestReward })),
  similarity: orObject(
    number(
      undefined,
      "Group steps with similar anchor states: the minimum ratio, in (0, 1], or { threshold, autojunk }.",
      { ...share, defaultText: "equal anchors only" },
    ),
    similarityFields,
  ),
  stepScope: oneOf(
    "task",
    ["task", "batch"],
    "Scope of step groups: steps of the same task (the paper), or of the whole batch, where equal " +
      "anchor states of different tasks are also grouped.",
  ),
  whiten: boolean(
    false,
    "Whether to whiten the final advantages: normalize them to mean 0 and standard deviation 1 over all sampled tokens.",
  ),
  ...grpoFields,
}

export type OutcomeOptions = OptionsOf<typeof outcomeFields>
/** Options of `grpo` and `grpoAdvantages`. */
export type GrpoOptions = OptionsOf<typeof grpoFields>
/** Options of `gigpo` and `gigpoAdvantages`. */
export type GigpoOptions = OptionsOf<typeof gigpoFields>
/** Options of step groups by similarity: threshold and computation. */
export type SimilarityOptions = OptionsOf<typeof similarityFields>
/** Divisor of the distance from the group mean. */
export type Normalization = ResolvedOf<typeof grpoFields>["normalization"]

/** Options of both levels with defaults and schedules resolved. */
export type SettingsNow = ScheduledValues<ResolvedOf<typeof gigpoFields>>

/** Options of the episode level with defaults and schedules resolved. */
export type EpisodeSettings = ScheduledValues<ResolvedOf<typeof grpoFields>>

/** Options that all comparisons of episodes share, with defaults and schedules resolved. */
export type OutcomeSettings = ScheduledValues<ResolvedOf<typeof outcomeFields>>

/** Progress for advantages outside a run: schedules have their initial values. */
export const outsideRuns: TrainingProgress = { iteration: 0, iterations: 1 }

/**
 * Returns the values of options at one point of a run, with defaults filled in.
 *
 * @param name name of the estimator, for messages
 * @throws BAD_ARGUMENT for an unknown option or an invalid value
 */
export function settle<F extends OptionFields>(
  name: string,
  options: OptionsOf<F>,
  table: F,
  progress: TrainingProgress,
): ScheduledValues<ResolvedOf<F>> {
  const read = readOptions(name, options, table)
  // Functions that are not schedules are left unchanged.
  const moving = Object.keys(read).filter((key) => "changes" in table[key]!)
  const numbers = Object.fromEntries(moving.map((key) => [key, read[key as keyof F]]))
  return { ...read, ...scheduleValues(numbers, progress) } as ScheduledValues<ResolvedOf<F>>
}

/** For gamma on its own. */
export function checkGamma(gamma: number): void {
  const wrong = gigpoFields.gamma.validate(gamma)
  if (wrong !== undefined) throw new GigpoError("BAD_ARGUMENT", `gamma ${wrong}, not ${String(gamma)}.`)
}

/** Custom estimator: an object, or a function only. */
export const customEstimator: CustomValue<Estimator | Estimator["estimate"]> = {
  validate: estimatorProblem,
  meant: (value) => "estimate" in value,
}

/** Choice among named estimators, GiGPO by default, or of a custom one. */
export type EstimatorChoice<All extends Readonly<Record<string, Named<OptionFields, Estimator>>>> = Choice<
  ReturnType<typeof fieldsOf<All>>,
  "gigpo",
  Readonly<Record<never, never>>,
  Estimator | Estimator["estimate"]
>
