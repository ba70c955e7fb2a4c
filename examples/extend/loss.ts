// A loss: CISPO (arXiv 2506.13585). The clipped ratio only weighs the log-probability and has no gradient of its own, so no token's
// gradient is cut off:  loss = -sg(clip(p / p_old, 0, 1 + high)) · A · log p
import { fields, type TokenLoss } from "gigpo"

export const options = {
  high: fields.number(0.28, "The ratio is kept below 1 + high.", { min: 0 }),
}

export default function cispo({ high }: { high: number }): TokenLoss {
  return {
    name: "cispo",
    // KL, entropy bonus and aggregation are composed around it; `shares`: weight of each token in the aggregation; `weights`: token weights from the estimator.
    evaluate({ tokens, logProbs, oldLogProbs, advantages, weights, shares }) {
      const gradient = new Float32Array(tokens)
      let [loss, clipped] = [0, 0]
      for (let t = 0; t < tokens; t++) {
        const ratio = Math.exp(Math.min(logProbs[t]! - oldLogProbs[t]!, 20))
        const weight = Math.min(ratio, 1 + high) * advantages[t]! * shares[t]! * (weights?.[t] ?? 1)
        if (ratio > 1 + high) clipped++
        loss -= weight * logProbs[t]!
        gradient[t] = -weight // d loss / d log p
      }
      return { loss, gradient, metrics: { "policy/clip-fraction": clipped / tokens } }
    },
  }
}
