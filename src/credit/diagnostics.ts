import type { Credit } from "./estimator.ts"
import { countGroups, type GroupStatistics, groupStatistics } from "./statistics.ts"
import { joinTokens } from "./tokens.ts"
import type { GigpoDiagnostics, GrpoDiagnostics } from "./types.ts"

/** Mean and sample standard deviation of all values; 0 and 0 without values. */
export function spreadOf(values: Float64Array): { readonly mean: number; readonly std: number } {
  const { mean, std } = groupStatistics(values, new Int32Array(values.length))
  return { mean: mean[0] ?? 0, std: std[0] ?? 0 }
}

export function summarizeAdvantages(advantages: Float64Array): Pick<GrpoDiagnostics, "advantageMean" | "advantageStd"> {
  const { mean, std } = spreadOf(advantages)
  return { advantageMean: mean, advantageStd: std }
}

/**
 * Metrics "advantage/mean" and "advantage/std" (sample) of the advantages that are trained on, over steps, or over tokens where
 * advantages are per token. Skipped steps do not count. Both metrics are absent if all steps are skipped.
 */
export function advantageMetrics({ advantages, skip }: Credit): Record<string, number> {
  const isLearned = (_: unknown, step: number) => skip?.[step] !== 1
  const learned =
    advantages instanceof Float64Array ? advantages.filter(isLearned) : joinTokens(advantages.filter(isLearned))
  if (learned.length === 0) return {}
  const { advantageMean, advantageStd } = summarizeAdvantages(learned)
  return { "advantage/mean": advantageMean, "advantage/std": advantageStd }
}

/** Metrics of the episode level, by their names in an iteration report. */
export function episodeMetrics({
  episodeGroups,
  constantEpisodeGroups,
}: Pick<GrpoDiagnostics, "episodeGroups" | "constantEpisodeGroups">): Record<string, number> {
  return { "group/constant": share(constantEpisodeGroups, episodeGroups) }
}

/** Metrics of the episode level and the step level. */
export function gigpoMetrics(diagnostics: GigpoDiagnostics): Record<string, number> {
  return {
    ...episodeMetrics(diagnostics),
    "step-group/count": diagnostics.stepGroups,
    "step-group/size": diagnostics.meanStepGroupSize,
    "step-group/singletons": diagnostics.singletonShare,
    "step-group/nonzero": diagnostics.nonzeroShare,
    "step-group/nonzero-across": diagnostics.nonzeroAcrossShare,
    // Shares are undefined if all advantages are 0.
    ...(diagnostics.episodeShare + diagnostics.stepShare > 0 && { "advantage/step-share": diagnostics.stepShare }),
  }
}

/** Sizes of the step groups. Steps without a group (-1) are not counted. */
export function summarizeStepGroups(
  groups: Int32Array,
): Pick<GigpoDiagnostics, "stepGroups" | "stepGroupSizes" | "meanStepGroupSize" | "singletonShare"> {
  const counts = new Int32Array(countGroups(groups))
  for (const group of groups) if (group >= 0) counts[group]! += 1
  const sizes = counts.filter((size) => size > 0)
  const grouped = sizes.reduce((sum, size) => sum + size, 0)
  const stepGroupSizes: Record<number, number> = {}
  for (const size of sizes) stepGroupSizes[size] = (stepGroupSizes[size] ?? 0) + 1
  return {
    stepGroups: sizes.length,
    stepGroupSizes,
    meanStepGroupSize: share(grouped, sizes.length),
    singletonShare: share(stepGroupSizes[1] ?? 0, grouped),
  }
}

/**
 * Shares of the steps that have a step advantage.
 *
 * @param groups step group of each step, [steps]; -1 for a step without a group, which is not counted
 * @param statistics statistics of the compared values of these groups
 * @param episodes dense ids, [steps]
 */
export function summarizeCompared(
  groups: Int32Array,
  { std }: GroupStatistics,
  episodes: Int32Array,
): Pick<GigpoDiagnostics, "nonzeroShare" | "nonzeroAcrossShare"> {
  const first = new Int32Array(std.length).fill(-1)
  const meets = new Uint8Array(std.length)
  for (const [step, group] of groups.entries()) {
    if (group < 0) continue
    if (first[group] === -1) first[group] = episodes[step]!
    else if (first[group] !== episodes[step]) meets[group] = 1
  }
  let [grouped, compared, across] = [0, 0, 0]
  for (const group of groups) {
    if (group < 0) continue
    grouped++
    if (std[group] === 0) continue
    compared++
    across += meets[group]!
  }
  return { nonzeroShare: share(compared, grouped), nonzeroAcrossShare: share(across, grouped) }
}

/** Contribution of each level to the magnitude of the advantages. */
export function summarizeLevels(
  episode: Float64Array,
  step: Float64Array,
  omega: number,
): Pick<GigpoDiagnostics, "episodeShare" | "stepShare"> {
  const size = (values: Float64Array) => values.reduce((sum, value) => sum + Math.abs(value), 0)
  const [fromEpisodes, fromSteps] = [size(episode), omega * size(step)]
  return {
    episodeShare: share(fromEpisodes, fromEpisodes + fromSteps),
    stepShare: share(fromSteps, fromEpisodes + fromSteps),
  }
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole
}
