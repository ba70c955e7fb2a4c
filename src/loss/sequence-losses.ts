import { shares } from "../engine/shares.ts"
import { GigpoError } from "../util/errors.ts"
import { sumTokens } from "./sum-tokens.ts"
import type { LossInput, LossOutput } from "./token-loss.ts"

/** What a loss of whole sequences says of one: its value, and of each of its tokens the derivative by the token's own log p. */
export interface SequenceLoss {
  readonly value: number
  slope(t: number): number
}

/**
 * A loss that is a mean over sequences, whatever the aggregation, and its gradient. Reports what `sumTokens` does.
 *
 * @param of sequence of tokens start … end - 1, and the mean of its advantages; weights of tokens are its own matter
 * @param counts tokens of which something holds, counted up by `of`; reported as shares of all tokens
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
  // Each token carries its sequence's loss, whose weights are in it: Σ share · loss is then its mean over sequences.
  const { weights: _, ...own } = { ...input, shares: shares("sequence-mean-token-mean", offsets) }
  return sumTokens(own, (_, t) => [values[t]!, slopes[t]!], counts)
}

/** The weight of a token, as a mean takes it. */
export function weightOf(name: string, weight: number): number {
  if (weight >= 0) return weight
  throw new GigpoError("BAD_ARGUMENT", `${name} takes a mean by weights, and one is ${weight}; give none below 0.`)
}
