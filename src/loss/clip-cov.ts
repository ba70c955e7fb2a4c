import { number, scheduled } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValues } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { clippedSurrogate } from "./clipped-surrogate.ts"
import { countOf, covarianceShareField, covariances } from "./covariances.ts"
import { defineLoss } from "./define-loss.ts"
import { ratioOf } from "./policy-ratio.ts"
import { clipScalesOf } from "./sum-tokens.ts"
import type { LossInput, TokenLoss } from "./token-loss.ts"

export const clipCovFields = {
  clipLow: scheduled(
    number(1, "Lower bound of the ratio: 1 - clipLow. The default is the authors': no lower bound.", {
      min: 0,
      max: 1,
    }),
  ),
  clipHigh: scheduled(
    number(1, "Upper bound of the ratio: 1 + clipHigh. The default is the authors': a wide clip range.", { min: 0 }),
  ),
  covarianceShare: covarianceShareField,
  covarianceLow: scheduled(number(1, "Covariance above which tokens may be dropped. The default is the paper's.")),
  covarianceHigh: scheduled(number(5, "Covariance below which tokens may be dropped. The default is the paper's.")),
}

/** Options of `clipCov`. */
export type ClipCovOptions = OptionsOf<typeof clipCovFields>

/**
 * Clip-Cov (arXiv 2505.22617, section 4): PPO's clipped surrogate without dual clip. To slow the loss of entropy, tokens are dropped at
 * random: covarianceShare of all tokens, chosen among the unclipped tokens with
 *
 *     covarianceLow < (A - mean A) (log p - mean log p) < covarianceHigh
 *
 * The means are over the tokens of the batch. The loss of a dropped token is 0; the token still counts in every mean. Reports
 * "policy/cov-clipped-fraction", "policy/clip-fraction", "policy/kl" and "policy/ratio".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const clipCov = defineLoss({
  name: "clip-cov",
  fields: clipCovFields,
  about: {
    system: "Clip-Cov",
    origin: "baseline",
    changes: ["loss", "tokens"],
    equation: "clipped surrogate; random tokens with 1 < (A - mean A) (log p - mean log p) < 5 are dropped",
    source: "arXiv 2505.22617",
    status: "exact",
  },
  make(given: ClipCovOptions = {}): TokenLoss {
    const options = readOptions("clipCov", given, clipCovFields)
    const { clipLow, clipHigh } = options
    const surrogate = clippedSurrogate({ clipLow, clipHigh, clipDual: Number.POSITIVE_INFINITY })
    return {
      name: "clip-cov",
      evaluate(input) {
        const { tokens, random } = input
        const now = scheduleValues(options, input.progress)
        const candidates = candidatesOf(input, now)
        // A forked generator: a second evaluation of the batch must drop the same tokens.
        const dropped = random.derive("clip-cov").shuffled(candidates).slice(0, countOf(now.covarianceShare, tokens))
        const weights = Float64Array.from(input.weights ?? new Float64Array(tokens).fill(1))
        for (const t of dropped) weights[t] = 0
        const output = surrogate.evaluate({ ...input, weights })
        const { "policy/dual-clip-fraction": _, ...metrics } = output.metrics!
        const droppedFraction = tokens === 0 ? 0 : dropped.length / tokens
        return { ...output, metrics: { ...metrics, "policy/cov-clipped-fraction": droppedFraction } }
      },
    }
  },
})

/** Tokens that may be dropped. */
function candidatesOf(
  input: LossInput,
  { clipLow, clipHigh, covarianceLow, covarianceHigh }: Readonly<Record<keyof typeof clipCovFields, number>>,
): number[] {
  const { advantages, logProbs, oldLogProbs } = input
  const clipScales = clipScalesOf(input)
  const candidates: number[] = []
  for (const [t, covariance] of covariances(input).entries()) {
    const [advantage, ratio, width] = [advantages[t]!, ratioOf(logProbs[t]! - oldLogProbs[t]!), clipScales[t]!]
    const clipped = advantage > 0 ? ratio > 1 + clipHigh * width : advantage < 0 && ratio < 1 - clipLow * width
    if (covarianceLow < covariance && covariance < covarianceHigh && !clipped) candidates.push(t)
  }
  return candidates
}
