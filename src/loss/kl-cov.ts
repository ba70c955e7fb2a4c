import { number, scheduled } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValues } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { countOf, covarianceShareField, covariances } from "./covariances.ts"
import { defineLoss } from "./define-loss.ts"
import { sumTokens } from "./sum-tokens.ts"
import type { TokenLoss } from "./token-loss.ts"

export const klCovFields = {
  covarianceShare: covarianceShareField,
  penalty: scheduled(
    number(1, "Weight of the penalty |log-ratio| on the selected tokens. The default is the paper's.", { min: 0 }),
  ),
}

/** Options of `klCov`. */
export type KlCovOptions = OptionsOf<typeof klCovFields>

/**
 * KL-Cov (arXiv 2505.22617, section 4): unclipped surrogate with a penalty on the tokens that would reduce the entropy most:
 *
 *     -A r, plus penalty · |l| on the covarianceShare of tokens with the highest covariance;  l = log p - log p_old, r = e^l
 *
 * The covariance is (A - mean A) (log p - mean log p), with means over the tokens of the batch, and is treated as a constant. Among tokens
 * of equal covariance the first are selected. Reports "policy/kl" and "policy/ratio".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const klCov = defineLoss({
  name: "kl-cov",
  fields: klCovFields,
  about: {
    system: "KL-Cov",
    origin: "baseline",
    changes: ["loss", "tokens"],
    equation: "-A r, plus |l| on the tokens of highest covariance",
    source: "arXiv 2505.22617",
    status: "exact",
  },
  make(given: KlCovOptions = {}): TokenLoss {
    const options = readOptions("klCov", given, klCovFields)
    return {
      name: "kl-cov",
      evaluate(input) {
        const { covarianceShare, penalty } = scheduleValues(options, input.progress)
        const held = largest(covariances(input), countOf(covarianceShare, input.tokens))
        return sumTokens(input, ({ advantage, logRatio, ratio, ratioSlope }, t) => {
          const weight = held[t] ? penalty : 0
          return [
            -advantage * ratio + weight * Math.abs(logRatio),
            -advantage * ratioSlope + weight * Math.sign(logRatio),
          ]
        })
      },
    }
  },
})

/** 1 for the `count` largest values and 0 for the others, [values]. Among equal values the first are selected. */
function largest(values: Float64Array, count: number): Float64Array {
  const least = values.slice().sort().at(-count)!
  let equal = count - values.filter((value) => value > least).length
  return values.map((value) => (value > least || (value === least && equal-- > 0) ? 1 : 0))
}
