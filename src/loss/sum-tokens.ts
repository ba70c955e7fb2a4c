import { ratioOf, ratioSlope } from "./policy-ratio.ts"
import type { LossInput, LossOutput } from "./token-loss.ts"

/** A token, as a loss that is a sum over tokens sees it. */
export interface PolicyToken {
  readonly logProb: number
  readonly advantage: number
  /** log p - log p_old, however far. */
  readonly logRatio: number
  /** p / p_old, and its derivative by log p; constant from e^-20 down and from e^20 up. */
  readonly ratio: number
  readonly ratioSlope: number
  /** What the width of a clip is multiplied by. */
  readonly clipScale: number
}

/**
 * A loss that is a sum over tokens, Σ share · weight · value, and its gradient. Reports "policy/kl" (old log p - log p) and
 * "policy/ratio", means over tokens.
 *
 * @param of a token's value, and its derivative by the token's own log p
 * @param counts tokens of which something holds, counted up by `of` at the latest; reported as shares of all tokens
 */
export function sumTokens(
  input: LossInput,
  of: (token: PolicyToken, t: number) => readonly [value: number, slope: number],
  counts: Readonly<Record<string, number>> = {},
): LossOutput {
  const { tokens, logProbs, oldLogProbs, advantages, weights, shares } = input
  const clipScales = clipScalesOf(input)
  const gradient = new Float32Array(tokens)
  let [loss, shifts, ratios] = [0, 0, 0]
  for (let t = 0; t < tokens; t++) {
    const logRatio = logProbs[t]! - oldLogProbs[t]!
    const token: PolicyToken = {
      logProb: logProbs[t]!,
      advantage: advantages[t]!,
      logRatio,
      ratio: ratioOf(logRatio),
      ratioSlope: ratioSlope(logRatio),
      clipScale: clipScales[t]!,
    }
    const [value, slope] = of(token, t)
    const share = shares[t]! * (weights === undefined ? 1 : weights[t]!)
    loss += share * value
    gradient[t] = share * slope
    shifts += logRatio
    ratios += token.ratio
  }
  const mean = (sum: number) => (tokens === 0 ? 0 : sum / tokens)
  const fractions = Object.entries(counts).map(([name, count]) => [name, mean(count)])
  return {
    loss,
    gradient,
    metrics: { "policy/kl": mean(-shifts), "policy/ratio": mean(ratios), ...Object.fromEntries(fractions) },
  }
}

/** The same number for all tokens of a span, [tokens]. */
export function clipScalesOf({ tokens, spanOffsets, clipScale }: LossInput): Float64Array {
  const scales = new Float64Array(tokens).fill(1)
  clipScale?.forEach((scale, span) => {
    scales.fill(scale, spanOffsets[span], spanOffsets[span + 1])
  })
  return scales
}
