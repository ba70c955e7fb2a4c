import type { TrainingProgress } from "../options/schedule.ts"
import { episodeMetrics } from "./diagnostics.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { normalizerOf } from "./normalizer.ts"
import { type OutcomeSettings, outsideRuns } from "./options.ts"
import { type Paid, payPenalties } from "./penalties.ts"
import { episodeReturns } from "./returns.ts"
import { countConstant, countGroups, type GroupStatistics, groupStatistics } from "./statistics.ts"

/** What the episodes of a batch came to, and how those of one task compare. */
export interface Outcomes {
  readonly batch: Batch
  /** R(τ) of each step's episode, [steps]. */
  readonly returns: Float64Array
  /** What each step brings into the comparison: the return, less what the step itself pays, [steps]. */
  readonly scores: Float64Array
  /** Of the scores of each task. */
  readonly statistics: GroupStatistics
}

export function outcomesOf(
  batch: Batch,
  settings: OutcomeSettings,
  { rewards, score }: Paid = payPenalties(batch, settings),
): Outcomes {
  const returns = episodeReturns(rewards, batch.episode)
  const scores = score(returns)
  const members = settings.episodeStatistics === "episodes" ? firstSteps(batch.episode) : undefined
  return { batch, returns, scores, statistics: groupStatistics(scores, batch.task, members) }
}

/** R(τ) - mean R of its task, for every step. */
export function centred({ batch, scores, statistics }: Outcomes, settings: OutcomeSettings): Float64Array {
  return normalizerOf({ std: "none", singleton: settings.singletonEpisode })(scores, batch.task, statistics)
}

/**
 * An estimator that gives every step of an episode the same, from comparing outcomes. Its details hold `episodeReturns`, [steps].
 *
 * @param settingsAt its options at a moment; refuses what has no meaning
 * @param compare the advantage of each step, [steps]
 */
export function outcomeEstimator<S extends OutcomeSettings>(
  name: string,
  settingsAt: (moment: TrainingProgress) => S,
  compare: (outcomes: Outcomes, settings: S) => Float64Array,
): Estimator<StepCredit> {
  return {
    name,
    groups: groupsOf(settingsAt(outsideRuns)),
    estimate(batch, { moment }) {
      const settings = settingsAt(moment)
      const outcomes = outcomesOf(batch, settings)
      return {
        advantages: compare(outcomes, settings),
        metrics: episodeMetrics(countTasks(outcomes)),
        details: { episodeReturns: outcomes.returns },
      }
    },
  }
}

/** A lone episode that keeps its return is learned from as it is. */
export function groupsOf({ singletonEpisode }: Pick<OutcomeSettings, "singletonEpisode">): Estimator["groups"] {
  return singletonEpisode === "zero" ? "needed" : undefined
}

/** How many tasks there are, and how many of them teach nothing. */
export function countTasks({ batch, statistics }: Pick<Outcomes, "batch" | "statistics">) {
  return { episodeGroups: countGroups(batch.task), constantEpisodeGroups: countConstant(statistics) }
}

/** 1 for the first row of each episode, which speaks for it in the statistic. */
export function firstSteps(episodes: Int32Array): Uint8Array {
  let seen = 0 // dense ids count up in order of first occurrence
  return new Uint8Array(episodes.length).map((_, row) => {
    if (episodes[row] !== seen) return 0
    seen++
    return 1
  })
}
