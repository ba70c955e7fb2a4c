import { countGroups, groupStatistics } from "./statistics.ts"
import type { GigpoDiagnostics, GrpoDiagnostics } from "./types.ts"

/** Mean and sample standard deviation over all rows; 0 and 0 for none. */
export function summarizeAdvantages(advantages: Float64Array): Pick<GrpoDiagnostics, "advantageMean" | "advantageStd"> {
  const { mean, std } = groupStatistics(advantages, new Int32Array(advantages.length))
  return { advantageMean: mean[0] ?? 0, advantageStd: std[0] ?? 0 }
}

/** How large the step groups are. */
export function summarizeStepGroups(
  groups: Int32Array,
): Pick<GigpoDiagnostics, "stepGroups" | "stepGroupSizes" | "meanStepGroupSize" | "singletonShare"> {
  const sizes = new Int32Array(countGroups(groups))
  for (const group of groups) sizes[group]! += 1
  const stepGroupSizes: Record<number, number> = {}
  for (const size of sizes) stepGroupSizes[size] = (stepGroupSizes[size] ?? 0) + 1
  return {
    stepGroups: sizes.length,
    stepGroupSizes,
    meanStepGroupSize: share(groups.length, sizes.length),
    singletonShare: share(stepGroupSizes[1] ?? 0, groups.length),
  }
}

/** What each level contributes to the size of the advantages. */
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
