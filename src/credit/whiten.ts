import { groupStatistics } from "./statistics.ts"

/** Added to the variance, so that nearly equal values do not blow up. */
const epsilon = 1e-8

/**
 * Values over all sampled tokens brought to mean 0 and variance 1: (x - mean) / √(var + 1e-8), var of the sample (n - 1). Exactly 0
 * where all are equal up to rounding.
 *
 * @param values [rows]
 * @param lengths the tokens that each stands for, [rows]. Default: one each.
 */
export function whiten(values: Float64Array, lengths?: Int32Array): Float64Array {
  const { mean, std } = groupStatistics(values, new Int32Array(values.length), lengths)
  const deviation = Math.sqrt(std[0]! ** 2 + epsilon)
  return values.map((value) => (std[0] === 0 ? 0 : (value - mean[0]!) / deviation))
}
