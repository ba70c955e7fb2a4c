import { without } from "../options/fixed.ts"
import type { Moment } from "../options/schedule.ts"
import { collect, scatter } from "./batch.ts"
import { episodeMetrics, summarizeAdvantages } from "./diagnostics.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { normalizerOf } from "./normalizer.ts"
import { type EpisodeSettings, gigpoFields, outsideRuns, settle } from "./options.ts"
import { type Paid, payPenalties } from "./penalties.ts"
import { episodeReturns } from "./returns.ts"
import { countConstant, countGroups, groupStatistics } from "./statistics.ts"
import type { GrpoOptions, GrpoResult, GrpoStep, Normalization } from "./types.ts"

/**
 * GRPO on episodes: every step of an episode gets A^E of Eq. 3, the episode's return compared with those of the same task. Its
 * details hold `episodeReturns`, [steps].
 *
 * @throws BAD_ARGUMENT for an option that has no meaning
 */
export function grpo(options: GrpoOptions = {}): Estimator<StepCredit> {
  return outcomeEstimator("grpo", (moment) => settle("grpo", options, gigpoFields, moment))
}

/** REINFORCE leave-one-out: the episode's return against the mean of the others. `grpo` under `normalization: "leaveOneOut"`. */
export function rloo(options: Omit<GrpoOptions, "normalization"> = {}): Estimator<StepCredit> {
  return outcomeEstimator("rloo", (moment) => ({
    ...settle("rloo", options, rlooFields, moment),
    normalization: "leaveOneOut",
  }))
}

// GiGPO's keys may be there, as in its presets: their values are checked and left aside.
const rlooFields = without(gigpoFields, "normalization")

function outcomeEstimator(name: string, settingsAt: (moment: Moment) => EpisodeSettings): Estimator<StepCredit> {
  settingsAt(outsideRuns)
  return {
    name,
    estimate(batch, { moment }) {
      const settings = settingsAt(moment)
      const { advantages, returns, ...groups } = episodeLevel(batch, settings, payPenalties(batch, settings))
      return { advantages, metrics: episodeMetrics(groups), details: { episodeReturns: returns } }
    },
  }
}

/**
 * The same credit as a pure function of plain steps, with diagnostics. A number that is a schedule counts as it begins.
 *
 * @param steps [steps]; none give an empty result
 * @throws NON_FINITE for a reward that is not finite, BAD_ARGUMENT for a step or an option that has no meaning
 */
export function grpoAdvantages(steps: readonly GrpoStep[], options: GrpoOptions = {}): GrpoResult {
  const settings = settle("grpo", options, gigpoFields, outsideRuns)
  const { batch, index } = collect(steps)
  const { advantages, episodeGroups, constantEpisodeGroups } = episodeLevel(
    batch,
    settings,
    payPenalties(batch, settings),
  )
  return {
    advantages: scatter(advantages, index, new Float64Array(steps.length)),
    diagnostics: { ...summarizeAdvantages(advantages), episodeGroups, constantEpisodeGroups },
  }
}

/** Eq. 3 for every step: A^E(τ_i) = (R(τ_i) - mean_j R(τ_j)) / F_norm({R(τ_j)}), over the episodes τ_j of one task. */
export function episodeLevel({ task, episode }: Batch, settings: EpisodeSettings, { rewards, score }: Paid) {
  const returns = episodeReturns(rewards, episode)
  const scores = score(returns)
  const members = settings.episodeStatistics === "episodes" ? firstSteps(episode) : undefined
  const statistics = groupStatistics(scores, task, members)
  const normalize = normalizerOf({ ...normalizers[settings.normalization], singleton: settings.singletonEpisode })
  return {
    advantages: normalize(scores, task, statistics),
    returns,
    episodeGroups: countGroups(task),
    constantEpisodeGroups: countConstant(statistics),
  }
}

/** F_norm by the names that options give it. */
export const normalizers = {
  std: { std: "sample" },
  none: { std: "none" },
  leaveOneOut: { std: "none", leaveOneOut: true },
} as const satisfies Record<Normalization, object>

/** 1 for the first row of each episode, which speaks for it in the statistic. */
function firstSteps(episodes: Int32Array): Uint8Array {
  let seen = 0 // dense ids count up in order of first occurrence
  return new Uint8Array(episodes.length).map((_, row) => {
    if (episodes[row] !== seen) return 0
    seen++
    return 1
  })
}
