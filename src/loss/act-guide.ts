import { number, scheduled } from "../options/field.ts"
import { only, without } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValues } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { clippedSurrogate } from "./clipped-surrogate.ts"
import { defineLoss } from "./define-loss.ts"
import { clippedSurrogateFields } from "./options.ts"
import { ratioOf } from "./policy-ratio.ts"
import type { LossInput, TokenLoss } from "./token-loss.ts"

const clipFields = without(clippedSurrogateFields, "ratio", "skipZeroAdvantage")

export const actGuideFields = {
  ...clipFields,
  offPolicyWeight: scheduled(
    number(0.1, "Weight of what was sampled with a hint, where all else weighs 1. The default is the authors'.", {
      min: 0,
    }),
  ),
  offPolicyClipScale: scheduled(
    number(1, "The width of its clip, times that of all else. The default is the authors'.", { min: 0 }),
  ),
  shaping: scheduled(
    number(
      0,
      "LUFFY's γ: its ratios become constant weights r / (r + γ), which no clip holds. 0 leaves them as they are.",
      {
        min: 0,
      },
    ),
  ),
}

/** Options of `actGuide`. */
export type ActGuideOptions = OptionsOf<typeof actGuideFields>

/**
 * ActGuide-RL's loss: PPO's clipped surrogate of what the policy said by itself, plus offPolicyWeight times the same of what it said with
 * a hint, whose ratio is how likely it would have said that without one:
 *
 *     r = p(token | prompt) / p_old(token | prompt and hint);  with shaping γ (LUFFY, arXiv 2504.14945) -A stop-gradient(r / (r + γ)) log p
 *
 * What was said with a hint is told by `Span.offPolicy`: a row of the prompt without the hint, with the log-probabilities that it was
 * sampled with, as an estimator's `extraRows` may hold it. Our reading: both are parts of one batch, whose tokens count alike. Reports
 * what `clippedSurrogate` does, and "policy/off-policy-fraction"; a shaped token's ratio there is 1.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an option that has no meaning.
 */
export const actGuide = defineLoss({
  name: "act-guide",
  fields: actGuideFields,
  about: {
    file: "src/training/curriculum/act-guide.ts",
    system: "Learning Agentic Policy from Action Guidance (ActGuide-RL)",
    origin: "successor",
    changes: ["curriculum", "loss"],
    equation:
      "the smallest k of an expert's actions as a hint that helps, in 4 probes; loss L + 0.1 L_off, r = p / p_old(with the hint)",
    source: "AMAP-ML/ActGuide-RL",
    set: { "training.curriculum.name": "act-guide" },
    standing: "exact",
    note: "The expert is the environment's, the hint's words are ours.",
  },
  make(given: ActGuideOptions = {}): TokenLoss {
    const options = readOptions("actGuide", given, actGuideFields)
    const surrogate = clippedSurrogate({ ...only(options, clipFields), skipZeroAdvantage: false })
    return {
      name: "act-guide",
      evaluate(input) {
        const { offPolicyWeight, offPolicyClipScale, shaping } = scheduleValues(options, input.moment)
        const isOff = offPolicyTokens(input)
        const { logProbs, oldLogProbs, advantages, spanOffsets, offPolicy } = input
        const output = surrogate.evaluate({
          ...input,
          weights: isOff.map((off, t) => (input.weights?.[t] ?? 1) * (off ? offPolicyWeight : 1)),
          clipScale: Float64Array.from(
            { length: spanOffsets.length - 1 },
            (_, span) => (input.clipScale?.[span] ?? 1) * (offPolicy?.[span] ? offPolicyClipScale : 1),
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

/** 1 for each token of a span that is off-policy, [tokens]. */
function offPolicyTokens({ tokens, spanOffsets, offPolicy }: LossInput): Float64Array {
  const isOff = new Float64Array(tokens)
  offPolicy?.forEach((off, span) => {
    isOff.fill(off, spanOffsets[span], spanOffsets[span + 1])
  })
  return isOff
}
