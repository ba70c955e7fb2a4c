import { shares } from "../engine/shares.ts"
import { GigpoError } from "../util/errors.ts"
import { sumTokens } from "./sum-tokens.ts"
import type { LossInput, LossOutput } from "./token-loss.ts"

/** Loss of one sequence. */
export interface SequenceLoss {
  readonly value: number
  /** Derivative of the value with respect to log p of token t. */
  slope(t: number): number
}

/**
 * Returns a loss that is a mean over sequences, independent of the aggregation, and its gradient. Reports the metrics of `sumTokens`.
 *
 * @param of - loss of the sequence of tokens start … end - 1, given the mean of its advantages. Token weights are left to this function.
 * @param counts - numbers of tokens by metric, which `of` increases. Reported as shares of all tokens.
 */
export function sumSequences(
  input: LossInput,
  of: (start: number, end: number, advantage: number) => SequenceLoss,
  counts: Readonly<Record<string, number>>,
): LossOutput {
  const { tokens, offsets, advantages } = input
  const [values, slopes] = [new Float64Array(tokens), new Float64Array(tokens)]
  for (let s = 0; s + 1 < offsets.length; s++) {
    const [start, end] = [offsets[s]!, offsets[s + 1]!]
    let advantage = 0
    for (let t = start; t < end; t++) advantage += advantages[t]! / (end - start)
    const { value, slope } = of(start, end, advantage)
    values.fill(value, start, end)
    for (let t = start; t < end; t++) slopes[t] = slope(t) * (end - start)
  }
  // Each token has the loss of its sequence, which includes the weights: Σ share · loss is then the mean over sequences.
  const { weights: _, ...own } = { ...input, shares: shares("sequence-mean-token-mean", offsets) }
  return sumTokens(own, (_, t) => [values[t]!, slopes[t]!], counts)
}

/** Returns a token weight after a check that it is at least 0. */
export function weightOf(name: string, weight: number): number {
  if (weight >= 0) return weight
  throw new GigpoError("BAD_ARGUMENT", `${name} needs token weights of at least 0 for its mean, not ${weight}.`)
}
