import { number, scheduled } from "../options/field.ts"
import type { LossInput } from "./token-loss.ts"

// Common parts of clip-cov and kl-cov (arXiv 2505.22617): tokens of high covariance cause most of the loss of entropy.

export const covarianceShareField = scheduled(
  number(
    2e-4,
    "Share of the batch's tokens that are dropped at most (clip-cov) or penalized for distance from the old policy (kl-cov); at least one " +
      "token. The default is the paper's, which uses 0.002 for kl-cov with 7B parameters.",
    { above: 0, max: 1 },
  ),
)

/** Contribution of each token to the covariance of advantages and log-probabilities, [tokens]: (A - mean A) (log p - mean log p). */
export function covariances({ tokens, advantages, logProbs }: LossInput): Float64Array {
  const mean = (column: ArrayLike<number>) => {
    let sum = 0 // of differences to the first value, so that the mean of equal numbers is exactly that number
    for (let t = 0; t < tokens; t++) sum += column[t]! - column[0]!
    return column[0]! + sum / tokens
  }
  const [advantage, logProb] = [mean(advantages), mean(logProbs)]
  return new Float64Array(tokens).map((_, t) => (advantages[t]! - advantage) * (logProbs[t]! - logProb))
}

/** Number of tokens for a share, at least 1. */
export function countOf(share: number, tokens: number): number {
  return Math.max(1, Math.floor(share * tokens))
}
