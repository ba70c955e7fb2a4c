import type { Aggregation } from "../engine/engine.ts"
import { flag, limit, number, oneOf, scheduled } from "../options/field.ts"
import type { OwnValue } from "../options/table.ts"
import { lossProblem } from "./as-token-loss.ts"
import type { TokenLoss } from "./token-loss.ts"

/** PPO's clipped surrogate with dual clip. */
export const clippedSurrogateFields = {
  clipLow: scheduled(number(0.2, "Ratio is kept above 1 - clipLow.", { least: 0, most: 1 })),
  clipHigh: scheduled(number(0.2, "Ratio is kept below 1 + clipHigh.", { least: 0 })),
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
  skipZeroAdvantage: flag(
    true,
    "Steps with advantage 0 have no gradient where there is neither a KL nor an entropy term. With this they count in the " +
      "loss's normalisation but are not computed, and the report is over the others.",
  ),
}

export const aggregations: readonly Aggregation[] = [
  "token-mean",
  "sequence-mean-token-sum",
  "sequence-mean-token-mean",
]

/** What stands around any policy loss. */
export const lossFields = {
  klWeight: scheduled(number(0, "Weight of the KL term to the reference policy.", { least: 0 })),
  klEstimator: oneOf(
    "k3",
    ["k1", "k2", "k3"],
    "Estimator of KL(policy ‖ reference) per token, with d = log p_ref - log p: k1 = -d, k2 = d²/2, k3 = e^d - d - 1.",
  ),
  entropyWeight: scheduled(number(0, "Weight of the entropy bonus; one below 0 is a penalty.")),
  aggregation: aggregationField(aggregations),
}

/** Among these, or more. */
export function aggregationField<const A extends string>(among: readonly A[]) {
  return oneOf<A | "token-mean", "token-mean", string>(
    "token-mean",
    among,
    "How the losses of tokens become one: every token weighs the same, or every sequence does, long ones by their length " +
      "(token-sum) or not (token-mean).",
  )
}

/** A policy loss of one's own: an object, or its function alone. */
export const ownLoss: OwnValue<TokenLoss | TokenLoss["evaluate"]> = {
  problem: lossProblem,
  meant: (value) => "evaluate" in value,
}
