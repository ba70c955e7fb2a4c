import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { clippedSurrogate } from "./clipped-surrogate.ts"
import { defineLoss } from "./define-loss.ts"
import { gspoFields } from "./options.ts"
import type { TokenLoss } from "./token-loss.ts"

/** Options of `gspo`. */
export type GspoOptions = OptionsOf<typeof gspoFields>

/**
 * GSPO (arXiv 2507.18071): the clipped surrogate with one ratio for a whole sequence, and no dual clip:
 *
 *     max(-A s, -A clip(s, 1 - clipLow, 1 + clipHigh));  s = exp(mean over the sequence of log p - log p_old)
 *
 * A mean of logarithms moves far less than one of them, hence clips of 3e-4 and 4e-4 (section 5.1). The paper's mean over sequences is
 * the aggregation "sequence-mean-token-mean". It reports, and runs in an engine's kernel, as `clippedSurrogate` does.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an option that has no meaning.
 */
export const gspo = defineLoss({
  name: "gspo",
  fields: gspoFields,
  about: {
    system: "GSPO",
    origin: "baseline",
    changes: ["loss"],
    equation: "the clipped surrogate of one ratio a sequence, s = e^(mean l)",
    source: "arXiv 2507.18071",
    standing: "exact",
  },
  make(given: GspoOptions = {}): TokenLoss {
    const clips = readOptions("gspo", given, gspoFields)
    return clippedSurrogate({ ...clips, clipDual: Infinity, ratio: "sequence", skipZeroAdvantage: false })
  },
})
