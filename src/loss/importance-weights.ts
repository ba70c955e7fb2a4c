import { boolean, limit, number, oneOf, scheduled } from "../options/field.ts"
import { fixed } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { ratioOf } from "./policy-ratio.ts"
import { trainerLogRatios } from "./trainer-log-ratios.ts"

export const rolloutCorrectionFields = {
  level: oneOf(
    "token",
    ["token", "sequence"],
    "Level of the weights: the ratio of each token, or the ratio of the whole sequence for all of its tokens.",
  ),
  truncate: scheduled(limit(2, "Upper bound of the weights. Infinity turns it off.", { above: 0 })),
  dropBelow: scheduled(number(0, "Ratio below which the weight is 0. 0 turns it off.", { min: 0 })),
  dropAbove: scheduled(
    limit(Number.POSITIVE_INFINITY, "Ratio above which the weight is 0. Infinity turns it off.", { above: 0 }),
  ),
  normalize: boolean(false, "Divide weights by their mean over tokens or sequences, including weights of 0."),
}

const rolloutCorrectionNumbers = fixed(rolloutCorrectionFields)

/** Options of `importanceWeights`. */
export type RolloutCorrectionOptions = OptionsOf<typeof rolloutCorrectionNumbers>

/**
 * Returns truncated importance sampling weights of tokens in the policy loss, [tokens]. They correct the mismatch between the probabilities
 * of the sampler and of the trainer:
 *
 *     rho = p_trainer / p_sampler, of a token, or the product over its sequence;
 *     0 if rho < dropBelow or rho > dropAbove, else min(rho, truncate); divided by the mean, if `normalize`
 *
 * Papers: truncated importance sampling (Ionides, J. Comput. Graph. Stat. 2008; for such engines Yao et al., "Your efficient RL framework
 * secretly brings you off-policy RL training", 2025), and IcePop, which drops on both sides (arXiv 2510.18855). Tokens that the trainer
 * has not computed (NaN) are left out of products and means. Their weight is 1 unless the level is "sequence" and the sequence has other
 * tokens.
 *
 * @param trainer - log p of each sampled token before the first update, [tokens].
 * @param sampler - log p of each token at the time of sampling, [tokens].
 * @param offsets - sequence s holds tokens offsets[s] … offsets[s + 1] - 1, [sequences + 1].
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option or columns of wrong length, `NON_FINITE` for a number that is neither finite nor
 * such a NaN.
 */
export function importanceWeights(
  trainer: ArrayLike<number>,
  sampler: ArrayLike<number>,
  offsets: ArrayLike<number>,
  given: RolloutCorrectionOptions = {},
): Float64Array {
  const { level, truncate, dropBelow, dropAbove, normalize } = readOptions(
    "importanceWeights",
    given,
    rolloutCorrectionNumbers,
  )
  if (dropBelow > dropAbove)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `dropBelow is ${dropBelow} and dropAbove is ${dropAbove}, which drops all tokens; dropBelow must be at most dropAbove.`,
    )
  const logRatios = trainerLogRatios(trainer, sampler, offsets)
  const units = level === "token" ? new Int32Array(logRatios.length + 1).map((_, t) => t) : offsets
  const ofUnits = new Float64Array(Math.max(units.length - 1, 0)).map((_, unit) => {
    let logRatio = Number.NaN
    for (let t = units[unit]!; t < units[unit + 1]!; t++)
      if (!Number.isNaN(logRatios[t]!)) logRatio = (Number.isNaN(logRatio) ? 0 : logRatio) + logRatios[t]!
    const ratio = ratioOf(logRatio)
    return ratio < dropBelow || ratio > dropAbove ? 0 : Math.min(ratio, truncate)
  })
  const known = ofUnits.filter((weight) => !Number.isNaN(weight))
  const mean = known.reduce((sum, weight) => sum + weight, 0) / known.length
  const scale = normalize && mean > 0 ? 1 / mean : 1
  const weights = new Float64Array(logRatios.length)
  for (const [unit, weight] of ofUnits.entries())
    weights.fill(Number.isNaN(weight) ? 1 : weight * scale, units[unit], units[unit + 1])
  return weights
}
