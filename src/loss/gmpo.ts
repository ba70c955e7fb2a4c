import { GigpoError } from "../errors.ts"
import { number, scheduled } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import { atMoment } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { shares } from "./aggregation.ts"
import { clamp, ratioOf, ratioSlope } from "./policy-ratio.ts"
import { clipScalesOf, sumTokens } from "./sum-tokens.ts"
import type { LossInput, TokenLoss } from "./token-loss.ts"

export const gmpoFields = {
  clipLow: scheduled(
    number(0.4, "Log-ratios are kept above -clipLow. The default is the paper's: a ratio of e^-0.4.", { least: 0 }),
  ),
  clipHigh: scheduled(
    number(0.4, "Log-ratios are kept below clipHigh. The default is the paper's: a ratio of e^0.4.", { least: 0 }),
  ),
}

export type GmpoOptions = OptionsOf<typeof gmpoFields>

/**
 * GMPO (arXiv 2507.20673): the geometric mean of a sequence's ratios, each clipped on its own, as its one ratio:
 *
 *     mean over sequences of -A exp(mean of m) exp(mean of log weight);  l = log p - log p_old,
 *     m = min(l, clip(l, -clipLow, clipHigh)) where A > 0, else max
 *
 * A is the mean of the sequence's advantages; weights are at least 0. Every sequence weighs the same by definition, whatever the
 * aggregation: that is for the KL and entropy terms alone. Reports "policy/clip-fraction" (tokens whose gradient a clip cut off),
 * "policy/kl" and "policy/ratio".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an option that has no meaning, or a weight below 0.
 */
export function gmpo(given: GmpoOptions = {}): TokenLoss {
  const options = readOptions("gmpo", given, gmpoFields)
  return {
    name: "gmpo",
    evaluate(input) {
      const { values, slopes, clipped } = sequenceLosses(input, atMoment(options, input.moment))
      // Each token carries its sequence's loss, whose weights are in it: Σ share · loss is then its mean over sequences.
      const { weights: _, ...own } = { ...input, shares: shares("sequence-mean-token-mean", input.offsets) }
      return sumTokens(own, (_, t) => [values[t]!, slopes[t]!], { "policy/clip-fraction": clipped })
    },
  }
}

/** The loss of each token's sequence and its derivative by the mean of m, 0 where a clip holds the token, [tokens]. */
function sequenceLosses(
  input: LossInput,
  { clipLow, clipHigh }: Readonly<Record<keyof typeof gmpoFields, number>>,
): { values: Float64Array; slopes: Float64Array; clipped: number } {
  const { tokens, offsets, logProbs, oldLogProbs, advantages, weights } = input
  const clipScales = clipScalesOf(input)
  const [values, slopes] = [new Float64Array(tokens), new Float64Array(tokens)]
  let clipped = 0
  for (let s = 0; s + 1 < offsets.length; s++) {
    const [start, end] = [offsets[s]!, offsets[s + 1]!]
    let [advantage, logWeight, mean] = [0, 0, 0]
    for (let t = start; t < end; t++) advantage += advantages[t]! / (end - start)
    for (let t = start; t < end; t++) {
      const logRatio = logProbs[t]! - oldLogProbs[t]!
      const bounded = clamp(logRatio, -clipLow * clipScales[t]!, clipHigh * clipScales[t]!)
      const moved = advantage > 0 ? Math.min(logRatio, bounded) : Math.max(logRatio, bounded)
      if (moved === logRatio) slopes[t] = 1
      else if (advantage !== 0) clipped++
      mean += moved / (end - start)
      logWeight += Math.log(weightOf(weights?.[t] ?? 1)) / (end - start)
    }
    const scale = -advantage * Math.exp(logWeight)
    values.fill(scale * ratioOf(mean), start, end)
    for (let t = start; t < end; t++) slopes[t]! *= scale * ratioSlope(mean)
  }
  return { values, slopes, clipped }
}

function weightOf(weight: number): number {
  if (weight >= 0) return weight
  throw new GigpoError(
    "BAD_ARGUMENT",
    `gmpo takes the geometric mean of weights, and one is ${weight}; give none below 0.`,
  )
}
