import type { Aggregation, KlEstimator } from "../engine/engine.ts"
import { boolean, integer, limit, number, oneOf, required, scheduled } from "../options/field.ts"
import type { CustomValue } from "../options/table.ts"
import { lossProblem } from "./as-token-loss.ts"
import type { TokenLoss } from "./token-loss.ts"

/** Options of a clip range, with defaults `low` and `high`. */
export function clipFields(low: number, high: number) {
  return {
    clipLow: scheduled(number(low, "Lower bound of the ratio: 1 - clipLow.", { min: 0, max: 1 })),
    clipHigh: scheduled(number(high, "Upper bound of the ratio: 1 + clipHigh.", { min: 0 })),
  }
}

/** Options of PPO's clipped surrogate with dual clip. */
export const clippedSurrogateFields = {
  ...clipFields(0.2, 0.2),
  clipDual: scheduled(
    limit(
      3,
      "Dual clip: upper bound -clipDual × advantage of the loss where the advantage is negative. Infinity turns it off.",
      {
        above: 1,
      },
    ),
  ),
  importanceSamplingLevel: oneOf(
    "token",
    ["token", "sequence"],
    "Level of the importance ratio: per token, or one ratio per sequence as in GSPO.",
  ),
  skipZeroAdvantage: boolean(
    true,
    "Whether steps with advantage 0 are left out of the computation where the loss has no KL and entropy term: their gradient is 0. They " +
      "still count in the aggregation of the loss; metrics are over the other steps.",
  ),
}

/** Options of GSPO. The clip range is that of arXiv 2507.18071, section 5.1. */
export const gspoFields = clipFields(3e-4, 4e-4)

/** Names of the loss aggregations. */
export const aggregations: readonly Aggregation[] = [
  "token-mean",
  "token-sum",
  "sequence-mean-token-sum",
  "sequence-mean-token-mean",
  "sequence-mean-fixed-length",
]

/** Options that all policy losses have: KL term, entropy bonus and aggregation. */
export const lossFields = {
  klWeight: scheduled(number(0, "Weight of the KL penalty to the reference policy.", { min: 0 })),
  klEstimator: oneOf<KlEstimator, "k3", string>(
    "k3",
    ["k1", "k2", "k3", "abs", "k1+", "k3+"],
    "Estimator of KL(policy ‖ reference) per token, with d = log p_ref - log p: k1 = -d, k2 = d²/2, k3 = e^d - d - 1 (capped at 10), " +
      "abs = |d|; k1+, k3+: value of k1 or k3 with the gradient of k2.",
  ),
  teacherWeight: scheduled(
    number(
      0,
      "Weight of the gated log-ratio of teacher to policy (SDAR) next to the policy loss: the mean of σ(teacherGate d) d over tokens, " +
        "d = log p_teacher - log p, with the gate σ as a constant. The authors' is 0.01.",
      { min: 0 },
    ),
  ),
  teacherGate: scheduled(
    number(
      5,
      "Slope of the gate, per nat: at 0 all tokens have ½, above 0 those with a higher probability under the teacher count.",
      {
        min: 0,
      },
    ),
  ),
  entropyWeight: scheduled(number(0, "Weight of the entropy bonus. A negative weight penalizes entropy.")),
  aggregation: aggregationField(aggregations),
  fixedLength: integer(
    undefined,
    "Divisor of each sequence's loss sum in tokens, for the aggregation sequence-mean-fixed-length; for example the maximum completion length.",
    { min: 1, defaultText: "none; required with that aggregation and not allowed with others" },
  ),
}

/** Options of `adaptiveKl`. */
export const adaptiveKlFields = {
  weight: required(number(undefined, "Initial weight of the KL penalty.", { above: 0 })),
  target: required(number(undefined, "Target of the KL to the reference policy in nats.", { above: 0 })),
  horizon: number(
    10_000,
    "Steps of episodes over which the weight changes by the relative error of the KL, which is clipped to ±0.2.",
    {
      above: 0,
    },
  ),
}

/** Option of the loss aggregation, with the given names. */
export function aggregationField<const A extends string>(among: readonly A[]) {
  return oneOf<A | "token-mean", "token-mean", string>(
    "token-mean",
    among,
    "How token losses are averaged: over all tokens (token-mean), as a plain sum (token-sum), or as a mean over sequences of their sum " +
      "(sequence-mean-token-sum), mean (sequence-mean-token-mean) or sum divided by fixedLength (sequence-mean-fixed-length).",
  )
}

/** Custom policy loss: an object, or its function alone. */
export const customLoss: CustomValue<TokenLoss | TokenLoss["evaluate"]> = {
  validate: lossProblem,
  meant: (value) => "evaluate" in value,
}
