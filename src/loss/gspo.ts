import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { clippedSurrogate } from "./clipped-surrogate.ts"
import { defineLoss } from "./define-loss.ts"
import { gspoFields } from "./options.ts"
import type { TokenLoss } from "./token-loss.ts"

/** Options of `gspo`. */
export type GspoOptions = OptionsOf<typeof gspoFields>

/**
 * GSPO (arXiv 2507.18071): clipped surrogate with one ratio per sequence, without dual clip:
 *
 *     max(-A s, -A clip(s, 1 - clipLow, 1 + clipHigh));  s = exp(mean over the sequence of log p - log p_old)
 *
 * The mean log-ratio of a sequence varies far less than the log-ratio of a token, hence the clip range of 3e-4 and 4e-4 (section 5.1). The
 * mean over sequences of the paper is the aggregation "sequence-mean-token-mean". Reports the metrics of `clippedSurrogate`, and runs in
 * the kernel of an engine in the same way.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const gspo = defineLoss({
  name: "gspo",
  fields: gspoFields,
  about: {
    system: "GSPO",
    origin: "baseline",
    changes: ["loss"],
    equation: "clipped surrogate with one ratio per sequence, s = e^(mean l)",
    source: "arXiv 2507.18071",
    status: "exact",
  },
  make(given: GspoOptions = {}): TokenLoss {
    const clips = readOptions("gspo", given, gspoFields)
    return clippedSurrogate({
      ...clips,
      clipDual: Infinity,
      importanceSamplingLevel: "sequence",
      skipZeroAdvantage: false,
    })
  },
})
