import { defineLoss } from "./define-loss.ts"
import type { TokenLoss } from "./token-loss.ts"

/** Cross-entropy, the loss of behavior cloning: minus the log-probability of each token. Advantages and old log-probabilities are not read. */
export const crossEntropy = defineLoss({
  name: "cross-entropy",
  fields: {},
  about: {
    system: "behavior cloning",
    origin: "baseline",
    changes: ["data"],
    equation: "-mean log p over completions of an expert, a transcript or a recorded episode",
    source: "Pomerleau 1989",
    status: "exact",
    note: "Separate command: `gigpo sft`.",
  },
  make(): TokenLoss {
    return {
      name: "cross-entropy",
      native: () => ({ kind: "cross-entropy" }),
      evaluate({ tokens, logProbs, shares, weights }) {
        const gradient = new Float32Array(tokens)
        let loss = 0
        for (let t = 0; t < tokens; t++) {
          const share = shares[t]! * (weights === undefined ? 1 : weights[t]!)
          loss -= share * logProbs[t]!
          gradient[t] = -share
        }
        return { loss, gradient }
      },
    }
  },
})
