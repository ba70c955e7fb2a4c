import { number, scheduled, string } from "../options/field.ts"
import type { OptionsOf } from "../options/table.ts"
import { largestReward } from "../util/largest-reward.ts"
import { defineEstimator } from "./define-estimator.ts"
import { episodeMetrics } from "./diagnostics.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { normalizers } from "./grpo.ts"
import { normalizerOf } from "./normalizer.ts"
import { groupByKey, metricOf, numbersOf, type StepKey, type StepNumbers, stepKey, stepNumbers } from "./of-steps.ts"
import { grpoFields, outsideRuns, settle } from "./options.ts"
import { countTasks, firstSteps, outcomesOf } from "./outcomes.ts"
import { countGroups, groupStatistics } from "./statistics.ts"

/** Options of `strata`. */
export const strataFields = {
  strategy: stepKey(
    undefined,
    "Strategy of the episode of a step, within its task: the name of a metric of steps, or in programs a function of a step.",
    "the action of the episode's first step, which the wrapper plan-first makes a plan",
  ),
  topShare: number(0.5, "Share of the best episodes of a strategy whose mean return is its value, in (0, 1].", {
    above: 0,
    max: 1,
  }),
  planning: stepNumbers(
    undefined,
    "Mark (1) of steps that wrote the strategy and have its advantage: the name of a metric, or in programs a function of the batch.",
    "the first step of each episode, or none if strategy is given",
  ),
  judgement: string(undefined, "Metric that is 1 at steps which the policy judged to be bad.", {
    defaultText: "no judge",
  }),
  judgementPenalty: scheduled(
    number(0.1, "Amount subtracted from the advantage of such a step, at least 0.", { min: 0, max: largestReward }),
  ),
  ...grpoFields,
}

/** Options of `strata`. */
export type StrataOptions = OptionsOf<typeof strataFields>

/**
 * StraTA estimator (arXiv 2605.06642): the episodes of a task follow several strategies, with several episodes each. A step that acts has
 * A = R(τ) normalized over the episodes of its strategy. A step that wrote a strategy has A = R(z) normalized over the strategies of the
 * task. R(z) is the mean return of the better half of the strategy's episodes (rounded up). The details contain both for every step,
 * `strategyAdvantages` and `actionAdvantages`. Two points are our interpretation: the two advantages are never added, and `judgementPenalty` is
 * subtracted from the advantage of steps that were judged bad.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const strata = defineEstimator({
  name: "strata",
  fields: strataFields,
  about: {
    system: "StraTA",
    origin: "successor",
    changes: ["credit", "rollout"],
    equation: "A of actions: R within their strategy; A of strategies: mean R of their better half, within the task",
    source: "arXiv 2605.06642, by two reproductions",
    set: {
      "training.rolloutHooks.name": "branch-at",
      "training.rolloutHooks.branchingFactor": 8,
      "training.rollout.maxBranches": 7,
      "environment.wrapper.name": "plan-first",
    },
    status: "interpreted",
    note: "Strategies are plans written by the policy, or metrics of steps. Selection among 8 times as many: `farthestPoints`, from embeddings, in code. The policy's judgement of its steps is a metric that you provide.",
  },
  make(options: StrataOptions = {}): Estimator<StepCredit> {
    settle("strata", options, strataFields, outsideRuns)
    return {
      name: "strata",
      groups: "needed",
      async estimate(batch, context) {
        const settings = settle("strata", options, strataFields, context.progress)
        const { topShare, judgement, judgementPenalty } = settings
        const { strategy = firstAction, planning = settings.strategy === undefined ? firstOfEpisodes : undefined } =
          settings
        const { normalization, epsilon, singletonEpisode: singleton } = settings
        const ids = groupByKey(strategy, batch, "strata")
        const outcomes = outcomesOf(batch, settings)
        const each = firstSteps(batch.episode)
        const normalize = normalizerOf({ ...normalizers[normalization], epsilon, singleton })
        const actions = normalize(outcomes.scores, ids, groupStatistics(outcomes.scores, ids, each))

        const worth = worthOf(outcomes.scores, ids, each, topShare)
        const tasks = batch.task.map((task, row) => (ids[row]! < 0 ? -1 : task))
        const strategies = normalize(worth, tasks, groupStatistics(worth, tasks, firstSteps(ids)))
        const plans = planning === undefined ? undefined : await numbersOf(planning, batch, context, "strata")
        const bad = judgement === undefined ? undefined : metricOf(batch, judgement, "strata", 0)
        return {
          advantages: actions.map(
            (action, row) =>
              (plans?.[row] === 1 ? strategies[row]! : action) - (bad?.[row] === 1 ? judgementPenalty : 0),
          ),
          metrics: { ...episodeMetrics(countTasks(outcomes)), "strategy/count": countGroups(ids) },
          details: { strategyAdvantages: strategies, actionAdvantages: actions },
        }
      },
    }
  },
})

/** Action of the first step of the episode. */
const firstAction: StepKey = (_step, row, { steps, episode }) => steps![episode.indexOf(episode[row]!)]!.action

const firstOfEpisodes: StepNumbers = ({ episode }) => Float64Array.from(firstSteps(episode))

/** R(z) of each step's strategy, [steps]; 0 for a step without a strategy. */
function worthOf(scores: Float64Array, ids: Int32Array, each: Uint8Array, share: number): Float64Array {
  const returns = Array.from({ length: countGroups(ids) }, (): number[] => [])
  for (const [row, id] of ids.entries()) if (each[row] === 1 && id >= 0) returns[id]!.push(scores[row]!)
  const worth = returns.map((all) => {
    const best = all.sort((a, b) => b - a).slice(0, Math.ceil(share * all.length))
    return best.reduce((sum, one) => sum + one, 0) / Math.max(best.length, 1)
  })
  return Float64Array.from(ids, (id) => worth[id] ?? 0)
}
