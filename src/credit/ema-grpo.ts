import { number } from "../options/field.ts"
import type { ScheduledValues } from "../options/schedule.ts"
import type { OptionsOf, ResolvedOf } from "../options/table.ts"
import { denseIds } from "../util/dense-ids.ts"
import { largestReward } from "../util/largest-reward.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { normalizerOf } from "./normalizer.ts"
import { keysOf, type StepKey, stepKey } from "./of-steps.ts"
import { outcomeFields, settle } from "./options.ts"
import { centred, firstSteps, type Outcomes, outcomeEstimator } from "./outcomes.ts"
import { groupStatistics } from "./statistics.ts"
import { namedKinds } from "./task-kinds.ts"

/** Options of `emaGrpo`. */
export const emaGrpoFields = {
  ...outcomeFields,
  kind: stepKey(
    undefined,
    "Kind of the task of a step: the name of a metric of steps, or in programs a function of a step.",
    "the kind in the name of the metric success/<kind>, or one kind for an environment without such a metric",
  ),
  decay: number(0.99, "Decay of the running moments of a task kind per iteration, in [0, 1).", {
    min: 0,
    below: 1,
  }),
  minStd: number(1e-3, "Minimum standard deviation that advantages are divided by, above 0.", {
    above: 0,
    max: largestReward,
  }),
  guard: number(
    5,
    "Magnitude of an advantage, above 0, beyond which the advantages of the task are divided by their own standard deviation (n) instead.",
    { above: 0 },
  ),
  epsilon: number(1e-6, "Constant added to the standard deviations, at least 0.", { min: 0, max: largestReward }),
}

/** Options of `emaGrpo`. */
export type EmaGrpoOptions = OptionsOf<typeof emaGrpoFields>

/** Moving averages of the returns of a task kind and of their squares. */
type Moments = readonly [first: number, second: number]

/**
 * EMA-GRPO estimator (OneThinker, tulerfeng/OneThinker): A(τ) = (R(τ) - mean R over the episodes of the task) / (σ + ε). σ = √(m2 - m1²)
 * is shared by all tasks of a kind. m1 and m2 are moving averages of returns and squared returns over iterations, including the present
 * one. Kinds of tasks with returns of different scale are thereby learned equally. The averages start with the first iteration that
 * contains the kind, and are saved in checkpoints. The kind of an episode is that of its first step.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const emaGrpo = defineEstimator({
  name: "ema-grpo",
  fields: emaGrpoFields,
  about: {
    system: "EMA-GRPO (OneThinker)",
    origin: "successor",
    changes: ["credit"],
    equation: "A = (R - mean R) / σ per kind of task, σ = √(m2 - m1²), running means with decay 0.99",
    source: "tulerfeng/OneThinker",
    status: "exact",
    note: "Kinds of tasks are those of the metric `success/<kind>`, which alfworld, search and sql report, or any metric. OneThinker's corpus has images, which are not supported.",
  },
  make(options: EmaGrpoOptions = {}): Estimator<StepCredit> {
    let moments: Readonly<Record<string, Moments>> = {}
    const estimator = outcomeEstimator(
      "ema-grpo",
      (progress) => settle("ema-grpo", options, emaGrpoFields, progress),
      (outcomes, settings) => {
        const names = episodeKinds(outcomes.batch, settings.kind)
        moments = { ...moments, ...metMoments(outcomes, names, moments, settings.decay) }
        return scaled(outcomes, settings, (row) => {
          const [first, second] = moments[names[row]!]!
          return Math.max(Math.sqrt(Math.max(second - first * first, 0)), settings.minStd)
        })
      },
    )
    return {
      ...estimator,
      state: () => ({ json: moments }),
      restore({ json }) {
        moments = json as Record<string, Moments>
      },
    }
  },
})

/** Name of the kind of each step's episode, [steps]. */
function episodeKinds(batch: Batch, kind: StepKey | undefined): string[] {
  if (kind === undefined) return namedKinds(batch)
  const keys = keysOf(kind, batch, "ema-grpo")
  const names: string[] = []
  for (const [row, isFirst] of firstSteps(batch.episode).entries())
    if (isFirst === 1) names[batch.episode[row]!] = `${typeof keys[row]} ${keys[row]}`
  return Array.from(batch.episode, (episode) => names[episode]!)
}

/** Moments of the kinds in this iteration. Each episode counts once. */
function metMoments(
  { batch, returns }: Outcomes,
  names: readonly string[],
  before: Readonly<Record<string, Moments>>,
  decay: number,
): Record<string, Moments> {
  const kinds = denseIds(names)
  const each = firstSteps(batch.episode)
  const firsts = groupStatistics(returns, kinds, each).mean
  const seconds = groupStatistics(
    returns.map((value) => value * value),
    kinds,
    each,
  ).mean
  const moved = [...new Set(names)].map((name, kind): [string, Moments] => {
    const [first, second] = before[name] ?? [firsts[kind]!, seconds[kind]!]
    return [name, [decay * first + (1 - decay) * firsts[kind]!, decay * second + (1 - decay) * seconds[kind]!]]
  })
  return Object.fromEntries(moved)
}

/**
 * Distances from the mean of the task, divided by the deviation of the kind. Where a distance then exceeds the guard, the deviation of the
 * task is used instead.
 */
function scaled(
  outcomes: Outcomes,
  settings: ScheduledValues<ResolvedOf<typeof emaGrpoFields>>,
  deviationOf: (row: number) => number,
): Float64Array {
  const { guard, epsilon, singletonEpisode: singleton } = settings
  const { task } = outcomes.batch
  const byKind = centred(outcomes, settings).map((distance, row) => distance / (deviationOf(row) + epsilon))
  const own = normalizerOf({ std: "population", epsilon, singleton })(outcomes.scores, task, outcomes.statistics)
  const exceeding = new Set(task.filter((_, row) => Math.abs(byKind[row]!) > guard))
  return byKind.map((value, row) => (exceeding.has(task[row]!) ? own[row]! : value))
}
