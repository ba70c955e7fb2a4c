import { boolean, integer, number } from "../options/field.ts"
import { only, without } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { clippedSurrogate } from "./clipped-surrogate.ts"
import { defineLoss } from "./define-loss.ts"
import { clippedSurrogateFields } from "./options.ts"
import type { TokenLoss } from "./token-loss.ts"
import { withImitation } from "./with-imitation.ts"

const clipFields = without(clippedSurrogateFields, "importanceSamplingLevel", "skipZeroAdvantage")

/** Options of `chord`. */
export const chordFields = {
  ...clipFields,
  peak: number(0.1, "Weight μ of the expert's steps after the warm-up, in [0, 1].", { min: 0, max: 1 }),
  valley: number(0.1, "Weight μ of the expert's steps after the decay, in [0, 1].", { min: 0, max: 1 }),
  warmup: integer(0, "Iterations in which μ grows linearly from 0 to `peak`.", { min: 0 }),
  decay: integer(0, "Iterations after the warm-up in which μ changes from `peak` to `valley`, by half a cosine.", {
    min: 0,
  }),
  phi: boolean(true, "Whether a token of the expert has the weight p (1 - p), a constant (CHORD-φ); else 1 (CHORD-μ)."),
}

/** Options of `chord`. */
export type ChordOptions = OptionsOf<typeof chordFields>

/**
 * Loss of CHORD (arXiv 2508.11408, modelscope/Trinity-RFT): imitation of an expert next to PPO's clipped surrogate. The weight μ of the
 * expert follows a schedule:
 *
 *     (1 - μ) clipped surrogate of the policy's tokens + μ mean of -φ log p over the expert's tokens,  φ = p (1 - p), a constant
 *
 * Tokens of the expert are those with `Segment.offPolicy`; `expertData` of a training run adds them. Each kind of tokens has a mean of its own. A
 * batch with one kind has only its term, with its weight. Reports the metrics of `clippedSurrogate`, in which tokens of the expert count as
 * unclipped, with ratio 1, "policy/off-policy-fraction", "policy/expert-weight" (μ) and "loss/cross-entropy" (the mean over the expert's
 * tokens).
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const chord = defineLoss({
  name: "chord",
  fields: chordFields,
  about: {
    system: "CHORD",
    origin: "baseline",
    changes: ["loss", "data"],
    equation:
      "(1 - μ) clipped surrogate + μ mean of -φ log p of the expert's tokens, φ = p (1 - p), a constant; μ by warm-up and half a cosine",
    source: "arXiv 2508.11408; Trinity-RFT",
    set: { "training.expertData.tasks": 4 },
    status: "exact",
    note: "The expert is that of the environment. Its steps are divided among the optimizer steps at random; Trinity-RFT has as many in each. Iterations of μ count from 1.",
  },
  make(given: ChordOptions = {}): TokenLoss {
    const options = readOptions("chord", given, chordFields)
    const surrogate = clippedSurrogate({ ...only(options, clipFields), skipZeroAdvantage: false })
    return {
      name: "chord",
      evaluate(input) {
        const mu = chordWeight(input.progress.iteration + 1, options)
        const output = withImitation(surrogate, input, { policy: 1 - mu, imitation: mu, phi: options.phi })
        return { ...output, metrics: { ...output.metrics, "policy/expert-weight": mu } }
      },
    }
  },
})

/** Weight μ at an iteration, counted from 1. */
export function chordWeight(
  iteration: number,
  { peak, valley, warmup, decay }: Readonly<Record<"peak" | "valley" | "warmup" | "decay", number>>,
): number {
  if (iteration < warmup) return (iteration / warmup) * peak
  const past = iteration - warmup
  return past >= decay ? valley : valley + ((peak - valley) * (1 + Math.cos((Math.PI * past) / decay))) / 2
}
