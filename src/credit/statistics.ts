import type { Normalization } from "./types.ts"

/** Added to the standard deviation, so that nearly equal values do not blow up. */
const EPSILON = 1e-6

/**
 * A spread this small against the size of the values is rounding, not signal. Without the guard a group of equal returns
 * can get advantages far from 0: the rounding of the mean, divided by 1e-6.
 */
const CONSTANT_TOLERANCE = 1e-10

export interface GroupStatistics {
  /** Values in the statistic, [groups]. */
  readonly size: Float64Array
  readonly mean: Float64Array
  /** Sample standard deviation (n - 1), [groups]; exactly 0 where the values are equal up to rounding. */
  readonly std: Float64Array
}

/** Statistics of each group. Two passes: the one-pass formula loses its digits when the mean is large against the spread. */
export function groupStatistics(values: Float64Array, groups: Int32Array, members?: Uint8Array): GroupStatistics {
  const count = countGroups(groups)
  const size = new Float64Array(count)
  const mean = new Float64Array(count)
  const std = new Float64Array(count)
  const largest = new Float64Array(count)
  const isMember = (row: number) => members === undefined || members[row] === 1
  for (const [row, group] of groups.entries()) {
    if (!isMember(row)) continue
    size[group]! += 1
    mean[group]! += values[row]!
    largest[group] = Math.max(largest[group]!, Math.abs(values[row]!))
  }
  for (let group = 0; group < count; group++) mean[group]! /= size[group]!
  for (const [row, group] of groups.entries()) if (isMember(row)) std[group]! += (values[row]! - mean[group]!) ** 2
  for (let group = 0; group < count; group++) {
    const deviation = Math.sqrt(std[group]! / Math.max(size[group]! - 1, 1))
    std[group] = deviation <= CONSTANT_TOLERANCE * largest[group]! ? 0 : deviation
  }
  return { size, mean, std }
}

export interface NormalizeOptions {
  readonly normalization: Normalization
  /** What a value alone in its statistic gets: 0, or itself, as if its group had mean 0 and deviation 1. */
  readonly singleton: "zero" | "raw"
  /** 1 for the rows that enter the statistic, [rows]. Every row is normalised. Default: all enter. */
  readonly members?: Uint8Array
}

/** (x - mean) / F_norm within each group, and the number of groups of two or more values that are all equal. */
export function normalizeGroups(
  values: Float64Array,
  groups: Int32Array,
  { normalization, singleton, members }: NormalizeOptions,
): { readonly advantages: Float64Array; readonly constantGroups: number } {
  const { size, mean, std } = groupStatistics(values, groups, members)
  const scale = (n: number, deviation: number) => {
    if (normalization === "std") return 1 / (deviation + EPSILON)
    return normalization === "leaveOneOut" && n > 1 ? n / (n - 1) : 1
  }
  const advantages = values.map((value, row) => {
    const group = groups[row]!
    if (size[group] === 1) return singleton === "raw" ? value * scale(1, 1) : 0
    return std[group] === 0 ? 0 : (value - mean[group]!) * scale(size[group]!, std[group]!)
  })
  return { advantages, constantGroups: size.filter((n, group) => n > 1 && std[group] === 0).length }
}

/** Number of groups of dense ids. */
export function countGroups(groups: Int32Array): number {
  return groups.reduce((count, group) => Math.max(count, group + 1), 0)
}
