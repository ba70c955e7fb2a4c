import { integer, number, oneOf, string } from "../options/field.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { largestReward } from "../util/largest-reward.ts"
import { candidateScores, candidateSequences } from "./candidates.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { normalizerOf } from "./normalizer.ts"
import { groupByKey, metricOf, numbersOf, stepKey, stepNumbers } from "./of-steps.ts"
import { outcomeFields, settle } from "./options.ts"
import { paidEstimator } from "./paid-estimator.ts"
import { groupStatistics } from "./statistics.ts"
import { stepsAfter, turnsOf } from "./turns.ts"

/** Options of `vpr`. */
export const vprFields = {
  groupBy: oneOf(
    undefined,
    ["candidates", "state", "turn"],
    "Items that a step is compared with: the other completions of its prompt (hooks.candidates), by their scores; the steps " +
      "of the same state; or, without states, the steps with the same index in all episodes.",
    { defaultText: "candidates where steps have some, else state" },
  ),
  state: stepKey(
    undefined,
    "State of a step within its task: the name of a metric of steps, or in programs a function of a step.",
    "the anchor state",
  ),
  score: stepNumbers(
    undefined,
    "Verification score of a step: the name of a metric, or in programs a function of the batch.",
    "its reward",
  ),
  stdScope: oneOf(
    "group",
    ["group", "batch"],
    "Scope of the standard deviation (TRL: scale_rewards): the group of the state, or all steps that are trained on, whose " +
      "mean is then subtracted, too.",
  ),
  std: oneOf(
    "population",
    ["population", "sample"],
    "Standard deviation: of the population (n) or of the sample (n - 1).",
  ),
  epsilon: number(1e-8, "Constant added to the standard deviation, at least 0.", { min: 0, max: largestReward }),
  minTurns: integer(
    4,
    "Minimum number of steps with the same index that are compared with each other; fewer are compared with the whole batch.",
    {
      min: 1,
    },
  ),
  bonus: number(0, "Bonus added to the score of the last step of a successful episode; the authors add 1."),
  success: string("success", "Metric that is 1 at the last step of a successful episode, for the bonus."),
  invalidActionPenalty: outcomeFields.invalidActionPenalty,
}

/** Options of `vpr`. */
export type VprOptions = OptionsOf<typeof vprFields>

/**
 * Verifiable process rewards (VPR, thu-nics/VPR): every step has its own score and is compared with others in the same state, A = (r -
 * mean) / (std + ε). Steps are skipped, not trained on with advantage 0, where all scores of the state are equal, where a step is alone, and where a
 * score is missing. The metric "step-group/skipped" is the share of skipped steps. With `compare: "turn"`, equal scores give 0 instead.
 *
 * In the authors' code several completions are sampled in every state, and the episode continues with one of the best: `hooks.candidates`,
 * with scores by an oracle. These completions form the group of the state. All are trained on; those that were not acted on are extra
 * sequences (which need `loss.klWeight: 0`). Two points are our interpretation: without candidates, states are identified by anchor
 * states, and bonus and penalty apply to candidates as to steps.
 *
 * @throws BAD_ARGUMENT for an invalid option, or for `score` or `state` where candidates are compared
 */
export const vpr = defineEstimator({
  name: "vpr",
  fields: vprFields,
  about: {
    system: "VPR (Verifiable Process Rewards)",
    origin: "successor",
    changes: ["credit", "rollout", "reward"],
    equation: "A = (r - mean r) / (std r + ε) per state; states with equal r are skipped",
    source: "thu-nics/VPR",
    set: { "training.rolloutHooks.name": "oracle-candidates" },
    environments: ["sokoban", "number-line", "blackjack", "sql"],
    status: "exact",
    note: "Candidates and oracle scores come from the hook `oracle-candidates`. Without candidates rewards are compared in equal anchor states, an interpretation.",
  },
  make(options: VprOptions = {}): Estimator<StepCredit> {
    const settingsAt = (progress: TrainingProgress) => {
      const settings = settle("vpr", options, vprFields, progress)
      if (settings.groupBy === "candidates") refuseWithCandidates(settings.score, settings.state)
      return settings
    }
    return paidEstimator("vpr", settingsAt, {}, async (batch, settings, context, plain) => {
      const { score, state, bonus, success, std, epsilon, minTurns } = settings
      const has = plain.steps?.some(({ candidates }) => candidates !== undefined) === true
      const { groupBy = has ? "candidates" : "state" } = settings
      const normalize = normalizerOf({ std, epsilon })
      const rewarded = (scores: Float64Array) =>
        bonus === 0 ? scores : withBonus(batch, scores, metricOf(batch, success, "vpr", 0), bonus)
      if (groupBy === "candidates") {
        refuseWithCandidates(score, state)
        return amongCandidates(plain, settings, rewarded, normalize)
      }
      const values = rewarded(score === undefined ? batch.rewards : await numbersOf(score, batch, context, "vpr"))
      const placed = (ids: Int32Array) => ids.map((id, row) => (Number.isNaN(values[row]!) ? -1 : id))
      if (groupBy === "turn") {
        const all = placed(new Int32Array(batch.length))
        const advantages = overTurns(values, placed(turnsOf(batch.episode)), all, minTurns, normalize)
        return withSkipped(
          advantages,
          all.map((id) => -id),
        )
      }
      const ids = placed(state === undefined ? batch.anchorGroups : groupByKey(state, batch, "vpr"))
      const { advantages, skip } = inStates(values, ids, settings.stdScope, normalize)
      return withSkipped(advantages, skip)
    })
  },
})

function refuseWithCandidates(score: unknown, state: unknown): void {
  const name = score !== undefined ? "score" : state !== undefined ? "state" : undefined
  if (name === undefined) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    `vpr: ${name} is not used if candidates are compared: hooks.candidates scores them, and each state has its own; leave it ` +
      'out, or set compare to "state".',
  )
}

type Normalize = ReturnType<typeof normalizerOf>

/** Advantages among values with the same id. Values with id -1, singletons and groups of equal values are skipped. */
function inStates(values: Float64Array, ids: Int32Array, stdScope: "group" | "batch", normalize: Normalize) {
  const groups = groupStatistics(values, ids)
  const skip = Uint8Array.from(ids, (id) => (id < 0 || groups.size[id] === 1 || groups.std[id] === 0 ? 1 : 0))
  if (stdScope === "group") return { advantages: normalize(values, ids, groups), skip }
  const centred = normalizerOf({ std: "none" })(values, ids, groups)
  const learned = ids.map((_, row) => -skip[row]!) // 0, or -1 for a step that is left out
  return { advantages: normalize(centred, learned, groupStatistics(centred, learned)), skip }
}

/** Advantages of all completions, each compared with those of the same prompt. */
function amongCandidates(
  batch: Batch,
  { stdScope, invalidActionPenalty }: { readonly stdScope: "group" | "batch"; readonly invalidActionPenalty: number },
  rewarded: (scores: Float64Array) => Float64Array,
  normalize: Normalize,
): StepCredit {
  const { scores, steps, offsets } = candidateScores(batch)
  const own = offsets.subarray(0, batch.length)
  const values = scores.slice()
  const isValid = batch.steps!.flatMap(({ candidates = [] }, step) => [
    batch.valid[step] === 1,
    ...candidates.map(({ valid }) => valid),
  ])
  for (const [at, valid] of isValid.entries()) if (!valid) values[at]! -= invalidActionPenalty
  const acted = rewarded(Float64Array.from(own, (at) => values[at]!))
  for (const [step, at] of own.entries()) values[at] = acted[step]!
  const { advantages, skip } = inStates(values, steps, stdScope, normalize)
  const extraSequences = candidateSequences(batch, (step) =>
    skip[own[step]!] === 1 ? undefined : advantages.subarray(offsets[step]! + 1, offsets[step + 1]),
  )
  const credit = withSkipped(
    Float64Array.from(own, (at) => advantages[at]!),
    Uint8Array.from(own, (at) => skip[at]!),
  )
  return {
    ...credit,
    extraSequences,
    metrics: { ...credit.metrics, "step-group/candidates": extraSequences.length },
  }
}

function withSkipped(advantages: Float64Array, left: Int32Array | Uint8Array) {
  const skip = Uint8Array.from(left)
  const count = skip.reduce((sum, one) => sum + one, 0)
  return { advantages, skip, metrics: { "step-group/skipped": count / Math.max(skip.length, 1) } }
}

function withBonus({ episode }: Batch, scores: Float64Array, success: Float64Array, bonus: number): Float64Array {
  const after = stepsAfter(episode)
  return scores.map((score, row) => score + (after[row]! < 0 && success[row] === 1 ? bonus : 0))
}

/** Advantages among the steps with the same index if there are at least `least`, otherwise among all steps. */
function overTurns(
  values: Float64Array,
  turns: Int32Array,
  all: Int32Array,
  least: number,
  normalize: Normalize,
): Float64Array {
  const own = groupStatistics(values, turns)
  const byTurn = normalize(values, turns, own)
  const overall = normalize(values, all, groupStatistics(values, all))
  return byTurn.map((value, row) => (own.size[turns[row]!]! >= least ? value : overall[row]!))
}
