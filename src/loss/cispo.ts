import { number, scheduled } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValues } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineLoss } from "./define-loss.ts"
import { clamp } from "./policy-ratio.ts"
import { sumTokens } from "./sum-tokens.ts"
import type { TokenLoss } from "./token-loss.ts"

export const cispoFields = {
  clipLow: scheduled(
    number(1, "Lower bound of a token's weight: 1 - clipLow. The default is the paper's: no lower bound.", {
      min: 0,
      max: 1,
    }),
  ),
  clipHigh: scheduled(
    number(
      3,
      "Upper bound of a token's weight: 1 + clipHigh. The paper tunes it and gives no number; the default is Tinker's.",
      {
        min: 0,
      },
    ),
  ),
}

/** Options of `cispo`. */
export type CispoOptions = OptionsOf<typeof cispoFields>

/**
 * CISPO (MiniMax-M1, arXiv 2506.13585). Importance weights are clipped for advantages of both signs and treated as constants, so that
 * every token has a gradient:
 *
 *     -stop-gradient(clip(r, 1 - clipLow, 1 + clipHigh)) A log p;  r = p / p_old
 *
 * Reports "policy/clip-fraction" (tokens whose ratio is outside the bounds), "policy/kl" and "policy/ratio".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const cispo = defineLoss({
  name: "cispo",
  fields: cispoFields,
  about: {
    system: "CISPO",
    origin: "baseline",
    changes: ["loss"],
    equation: "-clip(r) A log p, clip(r) a constant",
    source: "arXiv 2506.13585",
    status: "exact",
  },
  make(given: CispoOptions = {}): TokenLoss {
    const options = readOptions("cispo", given, cispoFields)
    return {
      name: "cispo",
      evaluate(input) {
        const { clipLow, clipHigh } = scheduleValues(options, input.progress)
        const counts = { "policy/clip-fraction": 0 }
        return sumTokens(
          input,
          ({ logProb, advantage, ratio, clipScale }) => {
            const weight = clamp(ratio, 1 - clipLow * clipScale, 1 + clipHigh * clipScale)
            if (weight !== ratio) counts["policy/clip-fraction"]++
            return [-weight * advantage * logProb, -weight * advantage]
          },
          counts,
        )
      },
    }
  },
})
