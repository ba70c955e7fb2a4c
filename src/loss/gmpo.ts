import { number, scheduled } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValues } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineLoss } from "./define-loss.ts"
import { clamp, ratioOf, ratioSlope } from "./policy-ratio.ts"
import { type SequenceLoss, sumSequences, weightOf } from "./sequence-losses.ts"
import { clipScalesOf } from "./sum-tokens.ts"
import type { TokenLoss } from "./token-loss.ts"

export const gmpoFields = {
  clipLow: scheduled(
    number(0.4, "Lower bound of log-ratios: -clipLow. The default is the paper's: a ratio of e^-0.4.", { min: 0 }),
  ),
  clipHigh: scheduled(
    number(0.4, "Upper bound of log-ratios. The default is the paper's: a ratio of e^0.4.", { min: 0 }),
  ),
}

/** Options of `gmpo`. */
export type GmpoOptions = OptionsOf<typeof gmpoFields>

/**
 * GMPO (arXiv 2507.20673). The ratio of a sequence is the geometric mean of its token ratios, each clipped separately:
 *
 *     mean over sequences of -A exp(mean of m) exp(mean of log weight);  l = log p - log p_old,
 *     m = min(l, clip(l, -clipLow, clipHigh)) where A > 0, else max
 *
 * A is the mean of the sequence's advantages; weights are at least 0. All sequences have the same weight by definition: the aggregation
 * applies to the KL and entropy terms only. Reports "policy/clip-fraction" (tokens whose gradient is clipped to 0), "policy/kl" and
 * "policy/ratio".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option, and on evaluation for a weight below 0.
 */
export const gmpo = defineLoss({
  name: "gmpo",
  fields: gmpoFields,
  about: {
    system: "GMPO",
    origin: "baseline",
    changes: ["loss"],
    equation: "-A e^(mean of the clipped l) per sequence",
    source: "arXiv 2507.20673",
    status: "exact",
  },
  make(given: GmpoOptions = {}): TokenLoss {
    const options = readOptions("gmpo", given, gmpoFields)
    return {
      name: "gmpo",
      evaluate(input) {
        const { clipLow, clipHigh } = scheduleValues(options, input.progress)
        const { logProbs, oldLogProbs, weights } = input
        const clipScales = clipScalesOf(input)
        const counts = { "policy/clip-fraction": 0 }
        const ofSequence = (start: number, end: number, advantage: number): SequenceLoss => {
          const free = new Uint8Array(end - start)
          let [logWeight, mean] = [0, 0]
          for (let t = start; t < end; t++) {
            const logRatio = logProbs[t]! - oldLogProbs[t]!
            const bounded = clamp(logRatio, -clipLow * clipScales[t]!, clipHigh * clipScales[t]!)
            const moved = advantage > 0 ? Math.min(logRatio, bounded) : Math.max(logRatio, bounded)
            if (moved === logRatio) free[t - start] = 1
            else if (advantage !== 0) counts["policy/clip-fraction"]++
            mean += moved / (end - start)
            logWeight += Math.log(weightOf("gmpo", weights?.[t] ?? 1)) / (end - start)
          }
          const scale = -advantage * Math.exp(logWeight)
          const slope = (scale * ratioSlope(mean)) / (end - start)
          return { value: scale * ratioOf(mean), slope: (t) => free[t - start]! * slope }
        }
        return sumSequences(input, ofSequence, counts)
      },
    }
  },
})
