import { sumTokens } from "./sum-tokens.ts"
import type { TokenLoss } from "./token-loss.ts"

/**
 * The policy gradient without a ratio (REINFORCE; Williams, "Simple statistical gradient-following algorithms for connectionist
 * reinforcement learning", Machine Learning 1992), which is also the loss of GPG (arXiv 2504.02546):
 *
 *     -A log p
 *
 * Right for one update on what the policy itself has sampled. Reports "policy/kl" and "policy/ratio", though it reads neither.
 */
export function reinforce(): TokenLoss {
  return {
    name: "reinforce",
    evaluate: (input) => sumTokens(input, ({ logProb, advantage }) => [-advantage * logProb, -advantage]),
  }
}
