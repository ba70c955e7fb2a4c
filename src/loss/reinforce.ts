import { defineLoss } from "./define-loss.ts"
import { sumTokens } from "./sum-tokens.ts"
import type { TokenLoss } from "./token-loss.ts"

/**
 * REINFORCE, the policy gradient without a ratio (Williams, "Simple statistical gradient-following algorithms for connectionist
 * reinforcement learning", Machine Learning 1992). GPG (arXiv 2504.02546) has the same loss:
 *
 *     -A log p
 *
 * Correct for a single update on on-policy data. Reports "policy/kl" and "policy/ratio", although the loss does not depend on them.
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
    status: "exact",
  },
  make(): TokenLoss {
    return {
      name: "reinforce",
      evaluate: (input) => sumTokens(input, ({ logProb, advantage }) => [-advantage * logProb, -advantage]),
    }
  },
})
