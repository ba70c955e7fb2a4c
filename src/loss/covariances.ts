import { number, scheduled } from "../options/field.ts"
import type { LossInput } from "./token-loss.ts"

// What clip-cov and kl-cov (arXiv 2505.22617) share: tokens of high covariance are those that make the entropy fall.

export const covarianceShareField = scheduled(
  number(
    2e-4,
    "Share of the batch's tokens that are dropped, at most (clip-cov), or held near the old policy (kl-cov); at least one token. " +
      "The default is the paper's; for kl-cov with 7B parameters it takes 0.002.",
    { above: 0, max: 1 },
  ),
)

/** Each token's part in the covariance of advantages and log-probabilities, [tokens]: (A - mean A) (log p - mean log p). */
export function covariances({ tokens, advantages, logProbs }: LossInput): Float64Array {
  const mean = (column: ArrayLike<number>) => {
    let sum = 0 // from the first on, so that the mean of equal numbers is that number
    for (let t = 0; t < tokens; t++) sum += column[t]! - column[0]!
    return column[0]! + sum / tokens
  }
  const [advantage, logProb] = [mean(advantages), mean(logProbs)]
  return new Float64Array(tokens).map((_, t) => (advantages[t]! - advantage) * (logProbs[t]! - logProb))
}

/** How many tokens a share of them is, at least one. */
export function countOf(share: number, tokens: number): number {
  return Math.max(1, Math.floor(share * tokens))
}
