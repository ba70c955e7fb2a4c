import { number, scheduled } from "../options/field.ts"
import { only, without } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValues } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { clippedSurrogate } from "./clipped-surrogate.ts"
import { defineLoss } from "./define-loss.ts"
import { offPolicyTokens } from "./off-policy-tokens.ts"
import { clippedSurrogateFields } from "./options.ts"
import { ratioOf } from "./policy-ratio.ts"
import type { TokenLoss } from "./token-loss.ts"

const clipFields = without(clippedSurrogateFields, "importanceSamplingLevel", "skipZeroAdvantage")

export const actGuideFields = {
  ...clipFields,
  offPolicyWeight: scheduled(
    number(
      0.1,
      "Weight of tokens that were sampled with a hint; other tokens have weight 1. The default is the authors'.",
      {
        min: 0,
      },
    ),
  ),
  offPolicyClipScale: scheduled(
    number(1, "Factor of the clip range for tokens that were sampled with a hint. The default is the authors'.", {
      min: 0,
    }),
  ),
  shaping: scheduled(
    number(
      0,
      "γ of LUFFY's policy shaping: ratios of tokens sampled with a hint become constant weights r / (r + γ), without a clip. 0 turns it off.",
      {
        min: 0,
      },
    ),
  ),
}

/** Options of `actGuide`. */
export type ActGuideOptions = OptionsOf<typeof actGuideFields>

/**
 * Loss of ActGuide-RL: PPO's clipped surrogate on the tokens that were sampled without a hint, plus offPolicyWeight times the same on the
 * tokens that were sampled with a hint. The ratio of the latter compares the probability without the hint to that with the hint:
 *
 *     r = p(token | prompt) / p_old(token | prompt and hint);  with shaping γ (LUFFY, arXiv 2504.14945) -A stop-gradient(r / (r + γ)) log p
 *
 * `Segment.offPolicy` marks segments that were sampled with a hint. Their sequence holds the prompt without the hint and the log-probabilities
 * of the rollout; the `extraSequences` of an estimator can provide such sequences. Implementation choice: tokens of both kinds count equally in
 * one batch. Reports the metrics of `clippedSurrogate`, where the ratio of a shaped token is 1, and "policy/off-policy-fraction".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const actGuide = defineLoss({
  name: "act-guide",
  fields: actGuideFields,
  about: {
    file: "src/training/curriculum/act-guide.ts",
    otherFiles: ["src/loss/act-guide.ts"],
    system: "Learning Agentic Policy from Action Guidance (ActGuide-RL)",
    origin: "successor",
    changes: ["curriculum", "loss"],
    equation:
      "smallest number of expert actions whose hint helps, found by 4 probes; loss L + 0.1 L_off, r = p / p_old(with the hint)",
    source: "AMAP-ML/ActGuide-RL",
    set: { "training.curriculum.name": "act-guide" },
    status: "exact",
    note: "The expert is that of the environment. The wording of the hint is an implementation choice.",
  },
  make(given: ActGuideOptions = {}): TokenLoss {
    const options = readOptions("actGuide", given, actGuideFields)
    const surrogate = clippedSurrogate({ ...only(options, clipFields), skipZeroAdvantage: false })
    return {
      name: "act-guide",
      evaluate(input) {
        const { offPolicyWeight, offPolicyClipScale, shaping } = scheduleValues(options, input.progress)
        const isOff = offPolicyTokens(input)
        const { logProbs, oldLogProbs, advantages, segmentOffsets, offPolicy } = input
        const output = surrogate.evaluate({
          ...input,
          weights: isOff.map((off, t) => (input.weights?.[t] ?? 1) * (off ? offPolicyWeight : 1)),
          clipScale: Float64Array.from(
            { length: segmentOffsets.length - 1 },
            (_, segment) => (input.clipScale?.[segment] ?? 1) * (offPolicy?.[segment] ? offPolicyClipScale : 1),
          ),
          ...(shaping > 0 && {
            oldLogProbs: isOff.map((off, t) => (off ? logProbs : oldLogProbs)[t]!),
            advantages: isOff.map((off, t) => {
              const ratio = ratioOf(logProbs[t]! - oldLogProbs[t]!)
              return advantages[t]! * (off ? ratio / (ratio + shaping) : 1)
            }),
          }),
        })
        const share = input.tokens === 0 ? 0 : isOff.reduce((sum, off) => sum + off, 0) / input.tokens
        return { ...output, metrics: { ...output.metrics, "policy/off-policy-fraction": share } }
      },
    }
  },
})
