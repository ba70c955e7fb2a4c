import { number, scheduled } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValues } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineLoss } from "./define-loss.ts"
import { sumTokens } from "./sum-tokens.ts"
import type { TokenLoss } from "./token-loss.ts"

export const droFields = {
  beta: scheduled(
    number(
      0.05,
      "Weight of the squared log-ratio, a penalty for distance from the old policy. The default is Tinker's.",
      {
        min: 0,
      },
    ),
  ),
}

/** Options of `dro`. */
export type DroOptions = OptionsOf<typeof droFields>

/**
 * Direct reward optimization (arXiv 2405.19107) per token, with the advantage in place of reward - value. There is no ratio; a quadratic
 * penalty keeps the policy near the old policy, which allows strongly off-policy data:
 *
 *     -(A log p - beta / 2 l²);  l = log p - log p_old
 *
 * Reports "policy/kl" and "policy/ratio".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const dro = defineLoss({
  name: "dro",
  fields: droFields,
  about: {
    system: "DRO",
    origin: "baseline",
    changes: ["loss"],
    equation: "-(A log p - β l² / 2)",
    source: "arXiv 2405.19107",
    status: "exact",
  },
  make(given: DroOptions = {}): TokenLoss {
    const options = readOptions("dro", given, droFields)
    return {
      name: "dro",
      evaluate(input) {
        const { beta } = scheduleValues(options, input.progress)
        return sumTokens(input, ({ logProb, advantage, logRatio }) => [
          (beta / 2) * logRatio ** 2 - advantage * logProb,
          beta * logRatio - advantage,
        ])
      },
    }
  },
})
