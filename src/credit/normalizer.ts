import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import { type GroupStatistics, groupStatistics } from "./statistics.ts"

/** How values are compared within their group. Published codes disagree on each of these, so each can be said. */
export interface NormalizerOptions {
  /** Which standard deviation a value's distance from the mean is divided by: n - 1 below the sum, n, or none. Default "sample". */
  readonly std?: "none" | "sample" | "population" | undefined
  /** Added to the deviation, so that nearly equal values do not blow up. At least 0. Default 1e-6. */
  readonly epsilon?: number | undefined
  /** What a value alone in its statistic gets: 0, or itself, as if its group had mean 0 and deviation 1. Default "zero". */
  readonly singleton?: "zero" | "raw" | undefined
  /** Compare with the mean of the others, which is n / (n - 1) as far (RLOO). Default false. */
  readonly leaveOneOut?: boolean | undefined
}

const optionKeys: KeysOf<NormalizerOptions> = { std: true, epsilon: true, singleton: true, leaveOneOut: true }

/**
 * Values [rows] compared within their groups [rows] (dense ids, -1 for a row of no group), as advantages [rows]: (x - mean) / F_norm.
 * Exactly 0 where the group's values are equal up to rounding, and for a row of no group.
 */
export type Normalizer = (values: Float64Array, groups: Int32Array) => Float64Array

/** @throws BAD_ARGUMENT for an invalid option */
export function normalizer(options: NormalizerOptions = {}): Normalizer {
  checkArguments("normalizer", options, optionKeys)
  const normalize = normalizerOf(options)
  return (values, groups) => normalize(values, groups, groupStatistics(values, groups))
}

/** The same from statistics that are at hand, and may be of some of the rows only. */
export function normalizerOf(
  options: NormalizerOptions,
): (values: Float64Array, groups: Int32Array, statistics: GroupStatistics) => Float64Array {
  const { std: kind = "sample", epsilon = 1e-6, singleton = "zero", leaveOneOut = false } = options
  checkChoice("std", kind, ["none", "sample", "population"])
  checkChoice("singleton", singleton, ["zero", "raw"])
  if (!(epsilon >= 0 && Number.isFinite(epsilon)))
    throw new GigpoError("BAD_ARGUMENT", `epsilon is ${epsilon}; give a finite number of at least 0.`)

  const scale = (n: number, deviation: number) => {
    const distance = leaveOneOut && n > 1 ? n / (n - 1) : 1
    if (kind === "none") return distance
    return distance / ((kind === "population" ? deviation * Math.sqrt((n - 1) / n) : deviation) + epsilon)
  }
  return (values, groups, { size, mean, std }) =>
    values.map((value, row) => {
      const group = groups[row]!
      if (group < 0) return 0
      if (size[group] === 1) return singleton === "raw" ? value * (kind === "none" ? 1 : 1 / (1 + epsilon)) : 0
      return std[group] === 0 ? 0 : (value - mean[group]!) * scale(size[group]!, std[group]!)
    })
}

function checkChoice(name: string, value: string, choices: readonly string[]): void {
  if (!choices.includes(value))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `${name} is ${JSON.stringify(value)}; give one of ${choices.map((choice) => `"${choice}"`).join(", ")}.`,
    )
}
