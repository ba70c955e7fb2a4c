import { defineLoss } from "./define-loss.ts"
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
export const reinforce = defineLoss({
  name: "reinforce",
  fields: {},
  about: {
    system: "REINFORCE",
    origin: "baseline",
    changes: ["loss"],
    equation: "-A log p",
    source: "Williams 1992",
    standing: "exact",
  },
  make(): TokenLoss {
    return {
      name: "reinforce",
      evaluate: (input) => sumTokens(input, ({ logProb, advantage }) => [-advantage * logProb, -advantage]),
    }
  },
})
