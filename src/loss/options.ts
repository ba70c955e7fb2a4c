import type { Aggregation, KlEstimator } from "../engine/engine.ts"
import { boolean, integer, limit, number, oneOf, required, scheduled } from "../options/field.ts"
import type { CustomValue } from "../options/table.ts"
import { lossProblem } from "./as-token-loss.ts"
import type { TokenLoss } from "./token-loss.ts"

/** Bounds of a ratio, with these defaults. */
export function clipFields(low: number, high: number) {
  return {
    clipLow: scheduled(number(low, "Ratio is kept above 1 - clipLow.", { min: 0, max: 1 })),
    clipHigh: scheduled(number(high, "Ratio is kept below 1 + clipHigh.", { min: 0 })),
  }
}

/** PPO's clipped surrogate with dual clip. */
export const clippedSurrogateFields = {
  ...clipFields(0.2, 0.2),
  clipDual: scheduled(
    limit(3, "Dual clip: with a negative advantage the loss is at most -clipDual × advantage. Infinity turns it off.", {
      above: 1,
    }),
  ),
  ratio: oneOf(
    "token",
    ["token", "sequence"],
    "The importance ratio of each token, or GSPO's one ratio for the whole reply.",
  ),
  skipZeroAdvantage: boolean(
    true,
    "Steps with advantage 0 have no gradient where there is neither a KL nor an entropy term. With this they count in the " +
      "loss's normalisation but are not computed, and the report is over the others.",
  ),
}

/** GSPO: one ratio for a whole sequence (arXiv 2507.18071, section 5.1, has these clips). */
export const gspoFields = clipFields(3e-4, 4e-4)

export const aggregations: readonly Aggregation[] = [
  "token-mean",
  "token-sum",
  "sequence-mean-token-sum",
  "sequence-mean-token-mean",
  "sequence-mean-fixed-length",
]

/** What stands around any policy loss. */
export const lossFields = {
  klWeight: scheduled(number(0, "Weight of the KL term to the reference policy.", { min: 0 })),
  klEstimator: oneOf<KlEstimator, "k3", string>(
    "k3",
    ["k1", "k2", "k3", "abs", "k1+", "k3+"],
    "Estimator of KL(policy ‖ reference) per token, with d = log p_ref - log p: k1 = -d, k2 = d²/2, k3 = e^d - d - 1, held to 10, " +
      "abs = |d|; k1+ and k3+ have the gradient of k2.",
  ),
  entropyWeight: scheduled(number(0, "Weight of the entropy bonus; one below 0 is a penalty.")),
  aggregation: aggregationField(aggregations),
  fixedLength: integer(
    undefined,
    "Tokens that sequence-mean-fixed-length divides every sequence by, whatever its length; the longest reply, say.",
    { min: 1, defaultText: "to be given with that aggregation, and with no other" },
  ),
}

/** Of `adaptiveKl`. */
export const adaptiveKlFields = {
  weight: required(number(undefined, "Weight of the KL term to begin with.", { above: 0 })),
  target: required(
    number(undefined, "KL to the reference policy in nats that the weight is to lead to.", { above: 0 }),
  ),
  horizon: number(10_000, "Steps over which the weight moves by the KL's error, which counts for a fifth at most.", {
    above: 0,
  }),
}

/** Among these, or more. */
export function aggregationField<const A extends string>(among: readonly A[]) {
  return oneOf<A | "token-mean", "token-mean", string>(
    "token-mean",
    among,
    "How the losses of tokens become one: every token weighs the same (of the mean, or of the plain sum), or every sequence does, " +
      "long ones by their length (token-sum), over a length that is given (fixed-length), or not (token-mean).",
  )
}

/** A policy loss of one's own: an object, or its function alone. */
export const customLoss: CustomValue<TokenLoss | TokenLoss["evaluate"]> = {
  validate: lossProblem,
  meant: (value) => "evaluate" in value,
}
