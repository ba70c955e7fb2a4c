import type { TokenColumn } from "../engine/sequence.ts"
import { joined } from "../util/joined.ts"
import type { Batch } from "./estimator.ts"

// Sampled tokens of a batch as one column, [tokens]: the tokens of all steps, concatenated.

/** Concatenation of columns [steps][tokens of the step], [tokens]. */
export function joinTokens(columns: readonly TokenColumn[]): Float64Array {
  return joined(Float64Array, columns)
}

/** Views of concatenated values by step, [steps][tokens of the step]. */
export function split(values: Float64Array, lengths: Int32Array): Float64Array[] {
  const begins = beginnings(lengths)
  return Array.from(lengths, (_, step) => values.subarray(begins[step], begins[step + 1]))
}

/** Concatenated values by step in single precision, [steps][tokens of the step], as training uses them. */
export function perToken(values: Float64Array, lengths: Int32Array): Float32Array[] {
  const begins = beginnings(lengths)
  const all = new Float32Array(values)
  return Array.from(lengths, (_, step) => all.subarray(begins[step], begins[step + 1]))
}

/** Number of each step, repeated for each of its tokens, [tokens]. */
export function spread<Values extends Float64Array | Int32Array>(values: Values, lengths: Int32Array): Values {
  const begins = beginnings(lengths)
  const all = new (values.constructor as new (length: number) => Values)(begins.at(-1)!)
  for (let step = 0; step < lengths.length; step++)
    for (let token = begins[step]!; token < begins[step + 1]!; token++) all[token] = values[step]!
  return all
}

/** Reward of each token, [tokens]. Without token rewards, the reward of a step is at its last token. */
export function rewardsOfTokens({ rewards, lengths, tokenRewards }: Batch): Float64Array {
  if (tokenRewards) return joinTokens(tokenRewards)
  const begins = beginnings(lengths)
  const all = new Float64Array(begins.at(-1)!)
  for (const [step, reward] of rewards.entries()) all[begins[step + 1]! - 1] = reward
  return all
}

/** Index of the first token of each step, followed by the total, [steps + 1]. */
function beginnings(lengths: ArrayLike<number>): Int32Array {
  const begins = new Int32Array(lengths.length + 1)
  for (let step = 0; step < lengths.length; step++) begins[step + 1] = begins[step]! + lengths[step]!
  return begins
}
