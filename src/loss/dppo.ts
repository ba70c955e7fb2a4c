import { limit, number, scheduled } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValues } from "../options/schedule.ts"
import type { OptionsOf, Resolved } from "../options/table.ts"
import { defineLoss } from "./define-loss.ts"
import { sumTokens } from "./sum-tokens.ts"
import type { TokenLoss } from "./token-loss.ts"

/** The two divergences have thresholds of their own; the rest is the same. */
const dppoFields = <const Help extends string>(threshold: number, help: Help) => ({
  thresholdLow: scheduled(number(threshold, help, { min: 0 })),
  thresholdHigh: scheduled(
    number(threshold, "The same for tokens of a positive advantage that have become likelier.", { min: 0 }),
  ),
  truncate: scheduled(
    limit(Number.POSITIVE_INFINITY, "Importance weights are at most this. Infinity, as in the paper, turns it off.", {
      above: 0,
    }),
  ),
})

export const dppoTvFields = dppoFields(
  0.15,
  "Total variation from which on a token is masked that has become less likely, unless its advantage is positive. The default is " +
    "the authors'.",
)
export const dppoKlFields = dppoFields(
  0.05,
  "KL divergence in nats from which on a token is masked that has become less likely, unless its advantage is positive. The " +
    "default is the authors'.",
)

/** Options of `dppoKl` and `dppoTv`. */
export type DppoOptions = OptionsOf<typeof dppoTvFields>

/**
 * Divergence PPO (arXiv 2602.04879, eq. 11 to 14): tokens are masked by how far the distribution has moved, not by their ratio,
 * which overstates it for rare tokens:
 *
 *     -A stop-gradient(min(r, truncate)) log p M;  p, p_old a token's probabilities, r = p / p_old
 *
 * M is 0 where an update would take the token further out: where A > 0, p > p_old and D > thresholdHigh, or A ≤ 0, p < p_old and
 * D > thresholdLow. D is of the two outcomes "this token" and "another": |p - p_old|. Thresholds are scaled as clips are. Reports
 * "policy/masked-fraction" (M = 0), "policy/truncated-fraction" (of what is not masked), "policy/kl" and "policy/ratio".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an option that has no meaning.
 */
export const dppoTv = defineLoss({
  name: "dppo-tv",
  fields: dppoTvFields,
  about: {
    file: "src/loss/dppo.ts",
    system: "DPPO, total variation",
    origin: "baseline",
    changes: ["loss", "tokens"],
    equation: "-r A log p, r a constant, without tokens that moved outwards by more than 0.15 of p",
    source: "arXiv 2602.04879",
    standing: "exact",
  },
  make(given: DppoOptions = {}): TokenLoss {
    return dppo("dppo-tv", readOptions("dppoTv", given, dppoTvFields), (logProb, oldLogProb) =>
      Math.abs(probability(logProb) - probability(oldLogProb)),
    )
  },
})

/**
 * The same with D = p_old log(p_old / p) + (1 - p_old) log((1 - p_old) / (1 - p)), in nats, with 1e-8 added to each 1 - p.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an option that has no meaning.
 */
export const dppoKl = defineLoss({
  name: "dppo-kl",
  fields: dppoKlFields,
  about: {
    file: "src/loss/dppo.ts",
    system: "DPPO, KL",
    origin: "baseline",
    changes: ["loss", "tokens"],
    equation: "the same by the KL of two outcomes, this token and another, of more than 0.05",
    source: "arXiv 2602.04879",
    standing: "exact",
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
  options: Resolved<typeof dppoTvFields>,
  divergence: (logProb: number, oldLogProb: number) => number,
): TokenLoss {
  return {
    name,
    evaluate(input) {
      const { thresholdLow, thresholdHigh, truncate } = scheduleValues(options, input.moment)
      const counts = { "policy/masked-fraction": 0, "policy/truncated-fraction": 0 }
      return sumTokens(
        input,
        ({ logProb, advantage, logRatio, ratio, clipScale }) => {
          const further = advantage > 0 ? logRatio > 0 : logRatio < 0
          const threshold = (advantage > 0 ? thresholdHigh : thresholdLow) * clipScale
          if (further && divergence(logProb, logProb - logRatio) > threshold) {
            counts["policy/masked-fraction"]++
            return [0, 0]
          }
          if (ratio > truncate) counts["policy/truncated-fraction"]++
          const weight = Math.min(ratio, truncate)
          return [-weight * advantage * logProb, -weight * advantage]
        },
        counts,
      )
    },
  }
}

/** Of a log-probability, which rounding may have put above 0. */
function probability(logProb: number): number {
  return Math.exp(Math.min(logProb, 0))
}
