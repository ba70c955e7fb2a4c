import { readOptions } from "../options/read.ts"
import { type AtMoment, scheduleValues } from "../options/schedule.ts"
import type { OptionsOf, Resolved } from "../options/table.ts"
import { defineLoss } from "./define-loss.ts"
import { clippedSurrogateFields } from "./options.ts"
import { clamp, maxLogRatio, ratioOf } from "./policy-ratio.ts"
import type { LossInput, LossOutput, TokenLoss } from "./token-loss.ts"

export type ClipOptions = OptionsOf<typeof clippedSurrogateFields>
type Clip = AtMoment<Resolved<typeof clippedSurrogateFields>>

/**
 * PPO's clipped surrogate, with asymmetric clip (DAPO), dual clip (Ye et al., AAAI 2020, eq. 5) and, with `ratio: "sequence"`,
 * GSPO's one ratio for a whole sequence (arXiv 2507.18071), the geometric mean over its tokens:
 *
 *     max(-A r, -A clip(r, 1 - clipLow, 1 + clipHigh)), at most -clipDual · A where A < 0;  r = p / p_old
 *
 * The derivative of r by each token's own log p is taken as r; it is 0 where a clip holds the loss. The twin of
 * core/kernels/clipped_surrogate.h. Reports "policy/clip-fraction" (tokens whose clipped term is the larger one, before the dual
 * clip), "policy/dual-clip-fraction" (tokens that the dual clip holds), "policy/kl" (old log p - log p) and "policy/ratio", means over
 * tokens.
 *
 * Its native form is that of token-mean without further terms; `composeLoss` adds these.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an option that has no meaning.
 */
export const clippedSurrogate = defineLoss({
  name: "clipped-surrogate",
  fields: clippedSurrogateFields,
  about: {
    system: "PPO's clipped surrogate",
    origin: "baseline",
    changes: ["loss"],
    equation: "max(-A r, -A clip(r, 1 - ε_low, 1 + ε_high)), at most -c A where A < 0",
    source: "arXiv 1707.06347, 1912.09729",
    standing: "exact",
  },
  make(given: ClipOptions = {}): TokenLoss {
    const options = readOptions("clippedSurrogate", given, clippedSurrogateFields)
    return {
      name: options.ratio === "sequence" ? "gspo" : "clipped-surrogate",
      native: (moment) => ({ kind: "clipped-surrogate", ...scheduleValues(options, moment), ...noTerms }),
      evaluate: (input) => evaluate(input, scheduleValues(options, input.moment)),
    }
  },
})

const noTerms = { klWeight: 0, klEstimator: "k3", entropyWeight: 0, aggregation: "token-mean" } as const

function evaluate(input: LossInput, { clipLow, clipHigh, clipDual, ratio: level }: Clip): LossOutput {
  const { tokens, offsets, spanOffsets, logProbs, oldLogProbs, advantages, weights, shares, clipScale } = input
  const gradient = new Float32Array(tokens)
  let [loss, ratios, shifts, cut, held] = [0, 0, 0, 0, 0]
  for (let s = 0, span = 0; s + 1 < offsets.length; s++) {
    const [start, end] = [offsets[s]!, offsets[s + 1]!]
    let shift = 0 // Σ log p - log p_old over the sequence
    for (let t = start; t < end; t++) shift += logProbs[t]! - oldLogProbs[t]!
    shifts += shift
    for (let t = start; t < end; t++) {
      while (t >= spanOffsets[span + 1]!) span++
      const width = clipScale === undefined ? 1 : clipScale[span]!
      const advantage = advantages[t]!
      const logRatio = level === "sequence" ? shift / (end - start) : logProbs[t]! - oldLogProbs[t]!
      const ratio = ratioOf(logRatio)
      const plain = -advantage * ratio
      const bounded = -advantage * clamp(ratio, 1 - clipLow * width, 1 + clipHigh * width)
      const clipped = bounded > plain
      const cap = advantage < 0 ? -clipDual * advantage : Infinity
      const dualClipped = (clipped ? bounded : plain) > cap
      const share = shares[t]! * (weights === undefined ? 1 : weights[t]!)
      loss += share * (dualClipped ? cap : clipped ? bounded : plain)
      if (clipped) cut++
      if (dualClipped) held++
      // dr / d log p = r, 0 beyond the clamp
      if (!clipped && !dualClipped && Math.abs(logRatio) <= maxLogRatio) gradient[t] = share * plain
      ratios += ratio
    }
  }
  const mean = (sum: number) => (tokens === 0 ? 0 : sum / tokens)
  return {
    loss,
    gradient,
    metrics: {
      "policy/clip-fraction": mean(cut),
      "policy/dual-clip-fraction": mean(held),
      "policy/kl": mean(-shifts),
      "policy/ratio": mean(ratios),
    },
  }
}
