import type { Column } from "../engine/rows.ts"
import { joined } from "../util/joined.ts"
import type { Batch } from "./estimator.ts"

// The sampled tokens of a batch, those of one step after those of the other, as if nothing lay between them: [tokens].

/** What stands [steps][tokens of the step], as one. */
export function joinTokens(columns: readonly Column[]): Float64Array {
  return joined(Float64Array, columns)
}

/** The other way round: views of what stands as one, [steps][tokens of the step]. */
export function split(values: Float64Array, lengths: Int32Array): Float64Array[] {
  const begins = beginnings(lengths)
  return Array.from(lengths, (_, step) => values.subarray(begins[step], begins[step + 1]))
}

/** The same in single precision, as training takes it. */
export function perToken(values: Float64Array, lengths: Int32Array): Float32Array[] {
  const begins = beginnings(lengths)
  const all = new Float32Array(values)
  return Array.from(lengths, (_, step) => all.subarray(begins[step], begins[step + 1]))
}

/** Each step's number for each of its tokens. */
export function spread<Values extends Float64Array | Int32Array>(values: Values, lengths: Int32Array): Values {
  const begins = beginnings(lengths)
  const all = new (values.constructor as new (length: number) => Values)(begins.at(-1)!)
  for (let step = 0; step < lengths.length; step++)
    for (let token = begins[step]!; token < begins[step + 1]!; token++) all[token] = values[step]!
  return all
}

/** What each token was rewarded with: where nothing else is said, a step's reward falls on its last. */
export function rewardsOfTokens({ rewards, lengths, tokenRewards }: Batch): Float64Array {
  if (tokenRewards) return joinTokens(tokenRewards)
  const begins = beginnings(lengths)
  const all = new Float64Array(begins.at(-1)!)
  for (const [step, reward] of rewards.entries()) all[begins[step + 1]! - 1] = reward
  return all
}

/** Where each step begins, and at last where they end, [steps + 1]. */
function beginnings(lengths: ArrayLike<number>): Int32Array {
  const begins = new Int32Array(lengths.length + 1)
  for (let step = 0; step < lengths.length; step++) begins[step + 1] = begins[step]! + lengths[step]!
  return begins
}
