import { readOptions } from "../options/read.ts"
import { type ScheduledValues, scheduleValues } from "../options/schedule.ts"
import type { OptionsOf, ResolvedOf } from "../options/table.ts"
import { defineLoss } from "./define-loss.ts"
import { clippedSurrogateFields } from "./options.ts"
import { clamp, maxLogRatio, ratioOf, sumOfLogRatios } from "./policy-ratio.ts"
import type { LossInput, LossOutput, TokenLoss } from "./token-loss.ts"

/** Options of `clippedSurrogate`. */
export type ClipOptions = OptionsOf<typeof clippedSurrogateFields>
type Clip = ScheduledValues<ResolvedOf<typeof clippedSurrogateFields>>

/**
 * PPO's clipped surrogate, with asymmetric clip range (DAPO) and dual clip (Ye et al., AAAI 2020, eq. 5). With `importanceSamplingLevel: "sequence"`, all
 * tokens of a sequence have GSPO's sequence ratio (arXiv 2507.18071), the geometric mean of their ratios:
 *
 *     max(-A r, -A clip(r, 1 - clipLow, 1 + clipHigh)), at most -clipDual · A if A < 0;  r = p / p_old
 *
 * The derivative of r with respect to a token's log p is taken as r. It is 0 if the loss is clipped. core/kernels/clipped_surrogate.h
 * computes the same. Reports means over tokens: "policy/clip-fraction" (the clipped term is the larger one, before the dual clip),
 * "policy/dual-clip-fraction" (the dual clip bounds the loss), "policy/kl" (old log p - log p) and "policy/ratio".
 *
 * The native form has the aggregation token-mean and no further terms; `composeLoss` adds them.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const clippedSurrogate = defineLoss({
  name: "clipped-surrogate",
  fields: clippedSurrogateFields,
  about: {
    system: "PPO's clipped surrogate",
    origin: "baseline",
    changes: ["loss"],
    equation: "max(-A r, -A clip(r, 1 - ε_low, 1 + ε_high)), at most -c A if A < 0",
    source: "arXiv 1707.06347, 1912.09729",
    status: "exact",
    note: "The bound -c A is the dual clip, `clipDual`.",
  },
  make(given: ClipOptions = {}): TokenLoss {
    const options = readOptions("clippedSurrogate", given, clippedSurrogateFields)
    return {
      name: options.importanceSamplingLevel === "sequence" ? "gspo" : "clipped-surrogate",
      native: (progress) => ({ kind: "clipped-surrogate", ...scheduleValues(options, progress), ...noTerms }),
      evaluate: (input) => evaluate(input, scheduleValues(options, input.progress)),
    }
  },
})

const noTerms = { klWeight: 0, klEstimator: "k3", entropyWeight: 0, aggregation: "token-mean" } as const

function evaluate(input: LossInput, { clipLow, clipHigh, clipDual, importanceSamplingLevel: level }: Clip): LossOutput {
  const { tokens, offsets, segmentOffsets, logProbs, oldLogProbs, advantages, weights, shares, clipScale } = input
  const gradient = new Float32Array(tokens)
  let [loss, ratios, shifts, cut, held] = [0, 0, 0, 0, 0]
  for (let s = 0, segment = 0; s + 1 < offsets.length; s++) {
    const [start, end] = [offsets[s]!, offsets[s + 1]!]
    const shift = sumOfLogRatios(input, start, end)
    shifts += shift
    for (let t = start; t < end; t++) {
      while (t >= segmentOffsets[segment + 1]!) segment++
      const width = clipScale === undefined ? 1 : clipScale[segment]!
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
