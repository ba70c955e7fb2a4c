import { boolean, limit, number, oneOf, scheduled } from "../options/field.ts"
import { fixed } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { ratioOf } from "./policy-ratio.ts"
import { trainerLogRatios } from "./trainer-log-ratios.ts"

export const importanceFields = {
  level: oneOf(
    "token",
    ["token", "sequence"],
    "What a weight is the ratio of: each token, or the whole sequence, on all of its tokens.",
  ),
  truncate: scheduled(limit(2, "Weights are at most this. Infinity turns it off.", { above: 0 })),
  dropBelow: scheduled(number(0, "Ratios below this get weight 0; with 0 there are none.", { min: 0 })),
  dropAbove: scheduled(
    limit(Number.POSITIVE_INFINITY, "Ratios above this get weight 0. Infinity turns it off.", { above: 0 }),
  ),
  normalize: boolean(
    false,
    "Divide weights by their mean, over tokens or over sequences, those of weight 0 with them.",
  ),
}

const importanceNumbers = fixed(importanceFields)

/** Its numbers, come from schedules. */
export type ImportanceOptions = OptionsOf<typeof importanceNumbers>

/**
 * Rollout correction: what each token weighs in the policy's loss, [tokens], because the engine that sampled it and the one that
 * trains give it different probabilities:
 *
 *     rho = p_trainer / p_sampler, of a token, or the product over its sequence;
 *     0 where rho < dropBelow or rho > dropAbove, else min(rho, truncate); then over the mean, if `normalize`
 *
 * Truncated importance sampling (Ionides, J. Comput. Graph. Stat. 2008; for such engines Yao et al., "Your efficient RL framework
 * secretly brings you off-policy RL training", 2025), and its two-sided dropping, IcePop (arXiv 2510.18855). Tokens that the trainer
 * has not computed (NaN) are in no product and no mean; they weigh 1 where there is no other in their sequence.
 *
 * @param trainer log p of each sampled token before the first update, [tokens]
 * @param sampler log p when it was sampled, [tokens]
 * @param offsets sequence s holds tokens offsets[s] … offsets[s + 1] - 1, [sequences + 1]
 * @throws GigpoError `BAD_ARGUMENT` for an option that has no meaning or columns that do not fit, `NON_FINITE` for other numbers
 * that are not finite.
 */
export function importanceWeights(
  trainer: ArrayLike<number>,
  sampler: ArrayLike<number>,
  offsets: ArrayLike<number>,
  given: ImportanceOptions = {},
): Float64Array {
  const { level, truncate, dropBelow, dropAbove, normalize } = readOptions(
    "importanceWeights",
    given,
    importanceNumbers,
  )
  if (dropBelow > dropAbove)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `dropBelow is ${dropBelow} and dropAbove ${dropAbove}, which drops everything; give bounds that leave room between them.`,
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
