import { number, scheduled } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValues } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineLoss } from "./define-loss.ts"
import { sumTokens } from "./sum-tokens.ts"
import type { TokenLoss } from "./token-loss.ts"

export const opmdLossFields = {
  tau: scheduled(
    number(
      1,
      "Weight τ of the regularization toward the current policy, at least 0, which divides the loss by 1 + τ.",
      {
        min: 0,
      },
    ),
  ),
}

/** Options of `opmdLoss`. */
export type OpmdLossOptions = OptionsOf<typeof opmdLossFields>

/**
 * Loss of OPMD, online policy mirror descent as Trinity-RFT has it. There is no ratio, so that data may be old:
 *
 *     -A log p / (1 + τ)
 *
 * The estimator `opmd` has the matching advantages. Reports "policy/kl" and "policy/ratio", although the loss does not depend on them.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const opmdLoss = defineLoss({
  name: "opmd",
  fields: opmdLossFields,
  about: {
    system: "OPMD, its loss",
    origin: "baseline",
    changes: ["loss"],
    equation: "-A log p / (1 + τ)",
    source: "Trinity-RFT",
    status: "exact",
  },
  make(given: OpmdLossOptions = {}): TokenLoss {
    const options = readOptions("opmdLoss", given, opmdLossFields)
    return {
      name: "opmd",
      evaluate(input) {
        const { tau } = scheduleValues(options, input.progress)
        return sumTokens(input, ({ logProb, advantage }) => [
          (-advantage * logProb) / (1 + tau),
          -advantage / (1 + tau),
        ])
      },
    }
  },
})
