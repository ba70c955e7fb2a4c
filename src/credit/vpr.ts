import { largestReward } from "../largest-reward.ts"
import { number, oneOf, text, whole } from "../options/field.ts"
import type { Moment } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { normalizerOf } from "./normalizer.ts"
import { groupByKey, metricOf, numbersOf, stepKey, stepNumbers } from "./of-steps.ts"
import { outcomeFields, settle } from "./options.ts"
import { paidEstimator } from "./paid-estimator.ts"
import { groupStatistics } from "./statistics.ts"
import { stepsAfter, turnsOf } from "./turns.ts"

/** Options of `vpr`. */
export const vprFields = {
  compare: oneOf(
    "state",
    ["state", "turn"],
    "What a step is compared with: the steps taken from its state, or without groups of states the steps of its number in all episodes.",
  ),
  state: stepKey(
    undefined,
    "Which steps of a task were taken from one state: the name of a metric of steps, or in code a function of each.",
    "those with equal anchors",
  ),
  score: stepNumbers(
    undefined,
    "What verifies a step: the name of a metric, or in code a function of the batch.",
    "its reward",
  ),
  whiten: oneOf(
    "group",
    ["group", "batch"],
    "Where distances from a state's mean are divided by a deviation: in its group, or over all steps that are learned from, whose " +
      "mean is then taken off too.",
  ),
  deviation: oneOf("population", ["population", "sample"], "Which deviation: of n values, or of n - 1."),
  epsilon: number(1e-8, "Added to the standard deviation, at least 0.", { least: 0, most: largestReward }),
  leastTurns: whole(4, "Steps of one number that are compared among themselves; fewer with all of the batch.", {
    least: 1,
  }),
  bonus: number(0, "Added to the score of the last step of an episode that succeeded; the authors add 1."),
  success: text("success", "The metric that is 1 at the last step of an episode that succeeded, for the bonus."),
  invalidActionPenalty: outcomeFields.invalidActionPenalty,
}

export type VprOptions = OptionsOf<typeof vprFields>

/**
 * Verifiable process rewards (VPR, thu-nics/VPR): every step is scored by itself and compared with others from the same state, A = (r -
 * mean) / (std + ε). Where these are equal, and where a step is alone, there is nothing to compare: such steps are left out (`skip`), not
 * learned with 0, and so are steps without a score. The metric "step-group/skipped" is their share. Compared by turns, equal scores
 * give 0. States are told apart by their anchors, where no key says which candidates were sampled together: our reading.
 *
 * @throws BAD_ARGUMENT for an option that has no meaning
 */
export function vpr(options: VprOptions = {}): Estimator<StepCredit> {
  const settingsAt = (moment: Moment) => settle("vpr", options, vprFields, moment)
  return paidEstimator("vpr", settingsAt, {}, async (batch, settings, context) => {
    const { compare, state, score, bonus, success, deviation: std, epsilon, leastTurns } = settings
    const scores = score === undefined ? batch.rewards : await numbersOf(score, batch, context, "vpr")
    const values = bonus === 0 ? scores : withBonus(batch, scores, metricOf(batch, success, "vpr", 0), bonus)
    const normalize = normalizerOf({ std, epsilon })
    const placed = (ids: Int32Array) => ids.map((id, row) => (Number.isNaN(values[row]!) ? -1 : id))
    const all = placed(new Int32Array(batch.length))
    if (compare === "turn") {
      const advantages = overTurns(values, placed(turnsOf(batch.episode)), all, leastTurns, normalize)
      return { advantages, ...left(all, (id) => id < 0) }
    }
    const ids = placed(state === undefined ? batch.anchorGroups : groupByKey(state, batch, "vpr"))
    const groups = groupStatistics(values, ids)
    const skipped = left(ids, (id) => id < 0 || groups.size[id] === 1 || groups.std[id] === 0)
    if (settings.whiten === "group") return { advantages: normalize(values, ids, groups), ...skipped }
    const centred = normalizerOf({ std: "none" })(values, ids, groups)
    const learned = all.map((_, row) => -skipped.skip[row]!) // 0, or -1 for a step that is left out
    return { advantages: normalize(centred, learned, groupStatistics(centred, learned)), ...skipped }
  })
}

/** Steps that are left out, by the group that they are in. */
function left(ids: Int32Array, isLeft: (id: number) => boolean) {
  const skip = Uint8Array.from(ids, (id) => (isLeft(id) ? 1 : 0))
  const count = skip.reduce((sum, one) => sum + one, 0)
  return { skip, metrics: { "step-group/skipped": count / Math.max(ids.length, 1) } }
}

function withBonus({ episode }: Batch, scores: Float64Array, success: Float64Array, bonus: number): Float64Array {
  const after = stepsAfter(episode)
  return scores.map((score, row) => score + (after[row]! < 0 && success[row] === 1 ? bonus : 0))
}

/** Compared among the steps of one number where there are enough, else among all. */
function overTurns(
  values: Float64Array,
  turns: Int32Array,
  all: Int32Array,
  least: number,
  normalize: ReturnType<typeof normalizerOf>,
): Float64Array {
  const own = groupStatistics(values, turns)
  const byTurn = normalize(values, turns, own)
  const overall = normalize(values, all, groupStatistics(values, all))
  return byTurn.map((value, row) => (own.size[turns[row]!]! >= least ? value : overall[row]!))
}
