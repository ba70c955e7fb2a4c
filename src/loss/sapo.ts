import { number, scheduled } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValues } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineLoss } from "./define-loss.ts"
import { sumTokens } from "./sum-tokens.ts"
import type { TokenLoss } from "./token-loss.ts"

export const sapoFields = {
  temperaturePositive: scheduled(
    number(1, "Temperature of the gate where the advantage is positive. The default is the paper's.", { above: 0 }),
  ),
  temperatureNegative: scheduled(
    number(
      1.05,
      "Temperature of the gate where the advantage is not positive. The default is the paper's, higher for stability.",
      {
        above: 0,
      },
    ),
  ),
}

/** Options of `sapo`. */
export type SapoOptions = OptionsOf<typeof sapoFields>

/**
 * SAPO (arXiv 2511.20347): soft gate around ratio 1 in place of a clip. The slope of the gate at ratio 1 is 1 for any temperature τ:
 *
 *     -(4 / τ) sigmoid(τ (r - 1)) A;  r = p / p_old
 *
 * τ is temperaturePositive where A > 0, otherwise temperatureNegative. The paper uses the aggregation "sequence-mean-token-mean". Reports
 * "policy/kl" and "policy/ratio".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const sapo = defineLoss({
  name: "sapo",
  fields: sapoFields,
  about: {
    system: "SAPO",
    origin: "baseline",
    changes: ["loss"],
    equation: "-(4 / τ) σ(τ (r - 1)) A",
    source: "arXiv 2511.20347",
    status: "exact",
  },
  make(given: SapoOptions = {}): TokenLoss {
    const options = readOptions("sapo", given, sapoFields)
    return {
      name: "sapo",
      evaluate(input) {
        const { temperaturePositive, temperatureNegative } = scheduleValues(options, input.progress)
        return sumTokens(input, ({ advantage, ratio, ratioSlope }) => {
          const temperature = advantage > 0 ? temperaturePositive : temperatureNegative
          const gate = 1 / (1 + Math.exp(-temperature * (ratio - 1)))
          return [(-4 / temperature) * gate * advantage, -4 * gate * (1 - gate) * advantage * ratioSlope]
        })
      },
    }
  },
})
