import { limit, number, scheduled } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValues } from "../options/schedule.ts"
import type { OptionsOf, ResolvedOf } from "../options/table.ts"
import { defineLoss } from "./define-loss.ts"
import { sumTokens } from "./sum-tokens.ts"
import type { TokenLoss } from "./token-loss.ts"

/** Options of DPPO. Only the thresholds differ between the divergences. */
const dppoFields = <const Help extends string>(threshold: number, help: Help) => ({
  thresholdLow: scheduled(number(threshold, help, { min: 0 })),
  thresholdHigh: scheduled(
    number(threshold, "thresholdLow for tokens with a positive advantage whose probability increased.", { min: 0 }),
  ),
  truncate: scheduled(
    limit(Number.POSITIVE_INFINITY, "Upper bound of the importance weights. Infinity, as in the paper, turns it off.", {
      above: 0,
    }),
  ),
})

export const dppoTvFields = dppoFields(
  0.15,
  "Total variation above which a token is masked if its probability decreased and its advantage is not positive. The default is the " +
    "authors'.",
)
export const dppoKlFields = dppoFields(
  0.05,
  "KL divergence in nats above which a token is masked if its probability decreased and its advantage is not positive. The default is " +
    "the authors'.",
)

/** Options of `dppoKl` and `dppoTv`. */
export type DppoOptions = OptionsOf<typeof dppoTvFields>

/**
 * Divergence PPO (arXiv 2602.04879, eq. 11 to 14) with total variation. Tokens are masked by the divergence of the distribution instead of
 * the ratio, which overstates the change of rare tokens:
 *
 *     -A stop-gradient(min(r, truncate)) log p M;  p, p_old a token's probabilities, r = p / p_old
 *
 * M is 0 if an update would increase the divergence further: where A > 0, p > p_old and D > thresholdHigh, or A ≤ 0, p < p_old and
 * D > thresholdLow. D is the total variation of the two outcomes "this token" and "another token": |p - p_old|. `clipScale` scales the
 * thresholds. Reports "policy/masked-fraction" (M = 0), "policy/ratio-truncated-fraction" (weights at the bound, masked tokens excluded),
 * "policy/kl" and "policy/ratio".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const dppoTv = defineLoss({
  name: "dppo-tv",
  fields: dppoTvFields,
  about: {
    file: "src/loss/dppo.ts",
    system: "DPPO, total variation",
    origin: "baseline",
    changes: ["loss", "tokens"],
    equation: "-r A log p, r a constant, without tokens whose p moved away from p_old by more than 0.15",
    source: "arXiv 2602.04879",
    status: "exact",
  },
  make(given: DppoOptions = {}): TokenLoss {
    return dppo("dppo-tv", readOptions("dppoTv", given, dppoTvFields), (logProb, oldLogProb) =>
      Math.abs(probability(logProb) - probability(oldLogProb)),
    )
  },
})

/**
 * Divergence PPO (arXiv 2602.04879) with the KL divergence: `dppoTv` with
 * D = p_old log(p_old / p) + (1 - p_old) log((1 - p_old) / (1 - p)), in nats, with 1e-8 added to each 1 - p.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const dppoKl = defineLoss({
  name: "dppo-kl",
  fields: dppoKlFields,
  about: {
    file: "src/loss/dppo.ts",
    system: "DPPO, KL",
    origin: "baseline",
    changes: ["loss", "tokens"],
    equation: "as DPPO, by a binary KL (this token or another) of more than 0.05",
    source: "arXiv 2602.04879",
    status: "exact",
  },
  make(given: DppoOptions = {}): TokenLoss {
    return dppo("dppo-kl", readOptions("dppoKl", given, dppoKlFields), (logProb, oldLogProb) => {
      const [p, old] = [probability(logProb), probability(oldLogProb)]
      const [others, othersOld] = [1 - p + 1e-8, 1 - old + 1e-8]
      return old * (oldLogProb - logProb) + othersOld * Math.log(othersOld / others)
    })
  },
})

function dppo(
  name: string,
  options: ResolvedOf<typeof dppoTvFields>,
  divergence: (logProb: number, oldLogProb: number) => number,
): TokenLoss {
  return {
    name,
    evaluate(input) {
      const { thresholdLow, thresholdHigh, truncate } = scheduleValues(options, input.progress)
      const counts = { "policy/masked-fraction": 0, "policy/ratio-truncated-fraction": 0 }
      return sumTokens(
        input,
        ({ logProb, advantage, logRatio, ratio, clipScale }) => {
          const further = advantage > 0 ? logRatio > 0 : logRatio < 0
          const threshold = (advantage > 0 ? thresholdHigh : thresholdLow) * clipScale
          if (further && divergence(logProb, logProb - logRatio) > threshold) {
            counts["policy/masked-fraction"]++
            return [0, 0]
          }
          if (ratio > truncate) counts["policy/ratio-truncated-fraction"]++
          const weight = Math.min(ratio, truncate)
          return [-weight * advantage * logProb, -weight * advantage]
        },
        counts,
      )
    },
  }
}

/** Probability of a log-probability. Rounding may have made the latter positive. */
function probability(logProb: number): number {
  return Math.exp(Math.min(logProb, 0))
}
