import { oneOf } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineLoss } from "./define-loss.ts"
import { sumOfLogRatios } from "./policy-ratio.ts"
import { sumTokens } from "./sum-tokens.ts"
import type { LossInput, TokenLoss } from "./token-loss.ts"

export const toprFields = {
  importanceSamplingLevel: oneOf(
    "sequence",
    ["sequence", "token"],
    "Ratio whose part up to 1 weights tokens of negative advantage: the product over the sequence (the paper), or that of the token " +
      "(Trinity-RFT).",
  ),
}

/** Options of `topr`. */
export type ToprOptions = OptionsOf<typeof toprFields>

/**
 * TOPR, tapered off-policy REINFORCE (arXiv 2503.14286). Positive examples have full weight, however old. Negative ones fade
 * with the probability that the policy still gives them:
 *
 *     -α A log p;  α = 1 if A > 0, else stop-gradient(min(r, 1));  r = p / p_old
 *
 * The paper's A is the return; any advantage can be used. Reports "policy/gradient-weight" (mean of α over tokens), "policy/kl" and "policy/ratio".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const topr = defineLoss({
  name: "topr",
  fields: toprFields,
  about: {
    system: "TOPR",
    origin: "baseline",
    changes: ["loss", "tokens"],
    equation: "-α A log p, α = 1 if A > 0, else min(p / p_old of the sequence, 1), a constant",
    source: "arXiv 2503.14286; Trinity-RFT",
    status: "exact",
    note: "Trinity-RFT has ratios of tokens: `training.loss.importanceSamplingLevel=token`.",
  },
  make(given: ToprOptions = {}): TokenLoss {
    const { importanceSamplingLevel } = readOptions("topr", given, toprFields)
    return {
      name: "topr",
      evaluate(input) {
        const shifts = importanceSamplingLevel === "sequence" ? sequenceShifts(input) : undefined
        let tapers = 0
        const output = sumTokens(input, ({ logProb, advantage, logRatio }, t) => {
          const taper = advantage > 0 ? 1 : Math.exp(Math.min(shifts?.[t] ?? logRatio, 0))
          tapers += taper
          return [-taper * advantage * logProb, -taper * advantage]
        })
        const mean = input.tokens === 0 ? 0 : tapers / input.tokens
        return { ...output, metrics: { ...output.metrics, "policy/gradient-weight": mean } }
      },
    }
  },
})

/** Σ log p - log p_old over the sequence of each token, [tokens]. */
function sequenceShifts(input: LossInput): Float64Array {
  const shifts = new Float64Array(input.tokens)
  for (let s = 0; s + 1 < input.offsets.length; s++) {
    const [start, end] = [input.offsets[s]!, input.offsets[s + 1]!]
    shifts.fill(sumOfLogRatios(input, start, end), start, end)
  }
  return shifts
}
