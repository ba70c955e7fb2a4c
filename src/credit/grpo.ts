import { summarizeAdvantages } from "./diagnostics.ts"
import { resolveOptions, type Settings } from "./options.ts"
import { episodeReturns } from "./returns.ts"
import { collectRows, type Rows, scatter } from "./rows.ts"
import { countGroups, normalizeGroups } from "./statistics.ts"
import type { GrpoOptions, GrpoResult, GrpoStep } from "./types.ts"

/**
 * GRPO on episodes: every step of an episode gets A^E of Eq. 3, the episode's return compared with those of the same task.
 *
 * @param steps [steps]; none give an empty result
 * @throws NON_FINITE for a reward that is not finite, BAD_ARGUMENT for a step or an option that has no meaning
 */
export function grpoAdvantages(steps: readonly GrpoStep[], options: GrpoOptions = {}): GrpoResult {
  const settings = resolveOptions(options)
  const rows = collectRows(steps, settings)
  const { advantages, constantGroups } = episodeLevel(rows, settings)
  return {
    advantages: scatter(advantages, rows.index, new Float64Array(steps.length)),
    diagnostics: {
      ...summarizeAdvantages(advantages),
      episodeGroups: countGroups(rows.tasks),
      constantEpisodeGroups: constantGroups,
    },
  }
}

/** Eq. 3 for every row: A^E(τ_i) = (R(τ_i) - mean_j R(τ_j)) / F_norm({R(τ_j)}). */
export function episodeLevel(rows: Rows<GrpoStep>, settings: Settings): ReturnType<typeof normalizeGroups> {
  const returns = episodeReturns(rows.rewards, rows.episodes)
  const scores = returns.map((value, row) => value - rows.penalties[row]!)
  return normalizeGroups(scores, rows.tasks, {
    normalization: settings.normalization,
    singleton: settings.singletonEpisode,
    ...(settings.episodeStatistics === "episodes" && { members: firstSteps(rows.episodes) }),
  })
}

/** 1 for the first row of each episode, which speaks for it in the statistic. */
function firstSteps(episodes: Int32Array): Uint8Array {
  let seen = 0 // dense ids count up in order of first occurrence
  return Uint8Array.from(episodes, (episode) => {
    const isFirst = episode === seen
    if (isFirst) seen++
    return isFirst ? 1 : 0
  })
}
