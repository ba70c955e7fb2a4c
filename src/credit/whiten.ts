import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { groupStatistics } from "./statistics.ts"

/** How values are whitened, where published codes disagree. */
export interface WhitenOptions {
  /** The deviation of the sample, n - 1 below the sum, or of the population, n. Default "sample". */
  readonly std?: "sample" | "population" | undefined
  /** Added to the variance, so that nearly equal values do not blow up. Default 1e-8. */
  readonly epsilon?: number | undefined
}

const optionKeys: KeysOf<WhitenOptions> = { std: true, epsilon: true }

/**
 * Values over all sampled tokens brought to mean 0 and variance 1: (x - mean) / √(var + epsilon). Exactly 0 where all are equal up to
 * rounding.
 *
 * @param values [rows]
 * @param lengths the tokens that each stands for, [rows]; 0 for one that is not counted. Default: one each.
 */
export function whiten(values: Float64Array, lengths?: Int32Array, options: WhitenOptions = {}): Float64Array {
  checkArguments("whiten", options, optionKeys)
  const { std: kind = "sample", epsilon = 1e-8 } = options
  const { size, mean, std } = groupStatistics(values, new Int32Array(values.length), lengths)
  const share = kind === "population" ? (size[0]! - 1) / size[0]! : 1
  const deviation = Math.sqrt(share * std[0]! ** 2 + epsilon)
  return values.map((value) => (std[0] === 0 ? 0 : (value - mean[0]!) / deviation))
}
