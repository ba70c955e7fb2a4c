import { number, oneOf, scheduled } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValues } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineLoss } from "./define-loss.ts"
import { clipFields } from "./options.ts"
import { clamp, maxLogRatio } from "./policy-ratio.ts"
import { powerMean } from "./power-mean.ts"
import { type SequenceLoss, sumSequences, weightOf } from "./sequence-losses.ts"
import { clipScalesOf } from "./sum-tokens.ts"
import type { LossInput, TokenLoss } from "./token-loss.ts"

export const holderFields = {
  p: scheduled(
    number(
      1,
      "Exponent of the power mean of a sequence's ratios: 1 is the arithmetic, 0 the geometric, -1 the harmonic mean. Higher values give " +
        "large ratios more weight. The paper decreases p from 2 to -2 over 500 iterations.",
    ),
  ),
  variant: oneOf(
    "sequence",
    ["sequence", "token"],
    "Whether the mean of a sequence's ratios is clipped (sequence), or each ratio before the mean (token).",
  ),
  ...clipFields(0.2, 0.2),
}

/** Options of `holderPo`. */
export type HolderOptions = OptionsOf<typeof holderFields>

/**
 * HölderPO (arXiv 2605.12058). The ratio of a sequence is the power mean of its token ratios:
 *
 *     mean over sequences of -A e^L;  log M = (log Σ w e^(p l) - log Σ w) / p, at p = 0 Σ w l / Σ w;  l = log p - log p_old
 *
 * Variant "sequence": L = min(log M, clip(log M, log(1 - clipLow), log(1 + clipHigh))) where A > 0, else max. Variant "token": each l is
 * clipped in this way, and L is log M of the clipped l. The gradient is -A e^L softmax(p l) where nothing is clipped. A is the mean of the
 * sequence's advantages.
 *
 * Implementation choices: token weights w are weights of the power mean, and the mean of w scales the loss, so that at p = 1 they act as in
 * other losses. The clip range of a sequence is scaled by the mean `clipScale` of its tokens. All sequences have the same weight by
 * definition: the aggregation applies to the KL and entropy terms only. Reports "policy/clip-fraction" (tokens whose gradient is clipped to
 * 0), "policy/kl" and "policy/ratio".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option, and on evaluation for a weight below 0.
 */
export const holderPo = defineLoss({
  name: "holder-po",
  fields: holderFields,
  about: {
    system: "HölderPO (Hölder Policy Optimisation)",
    origin: "successor",
    changes: ["loss"],
    equation:
      "-A M_p of a sequence, log M_p = (log mean e^(p l)) / p, M_p clipped to [1 - ε_low, 1 + ε_high]; p falls from 2 to -2",
    source: "arXiv 2605.12058",
    status: "exact",
    note: "The default of p is 1; the schedules of the paper are `p: { from, to, over, shape }`. The effect of token weights is an interpretation.",
  },
  make(given: HolderOptions = {}): TokenLoss {
    const options = readOptions("holderPo", given, holderFields)
    return {
      name: "holder-po",
      evaluate(input) {
        const { p, variant, clipLow, clipHigh } = scheduleValues(options, input.progress)
        const clipScales = clipScalesOf(input)
        const counts = { "policy/clip-fraction": 0 }
        const hold = (logRatio: number, advantage: number, scale: number) => {
          const bounded = clamp(logRatio, Math.log(Math.max(1 - clipLow * scale, 0)), Math.log1p(clipHigh * scale))
          return advantage > 0 ? Math.min(logRatio, bounded) : Math.max(logRatio, bounded)
        }
        const ofSequence = (start: number, end: number, advantage: number): SequenceLoss => {
          const length = end - start
          const { logRatios, weights, slopes } = columns(input, start, end)
          const widths = clipScales.subarray(start, end)
          if (variant === "token")
            for (let i = 0; i < length; i++) {
              const held = hold(logRatios[i]!, advantage, widths[i]!)
              if (held === logRatios[i]) continue
              logRatios[i] = held
              slopes[i] = 0
              if (advantage !== 0) counts["policy/clip-fraction"]++
            }
          const { logMean, parts, weight } = powerMean(logRatios, weights, p)
          const width = widths.reduce((sum, one) => sum + one, 0) / length
          const held = variant === "token" ? logMean : hold(logMean, advantage, width)
          const clipped = held !== logMean
          if (clipped && advantage !== 0) counts["policy/clip-fraction"] += length
          const value = -advantage * (weight / length) * Math.exp(held)
          return { value, slope: (t) => (clipped ? 0 : value * parts[t - start]! * slopes[t - start]!) }
        }
        return sumSequences(input, ofSequence, counts)
      },
    }
  },
})

/** Log-ratios of a sequence, clamped so that e^l is finite; their weights; and their slopes, 0 if clamped and 1 elsewhere. */
function columns({ logProbs, oldLogProbs, weights }: LossInput, start: number, end: number) {
  const exact = Float64Array.from({ length: end - start }, (_, i) => logProbs[start + i]! - oldLogProbs[start + i]!)
  return {
    logRatios: exact.map((logRatio) => clamp(logRatio, -maxLogRatio, maxLogRatio)),
    weights: exact.map((_, i) => weightOf("holder-po", weights?.[start + i] ?? 1)),
    slopes: exact.map((logRatio) => (Math.abs(logRatio) <= maxLogRatio ? 1 : 0)),
  }
}
