import { withDefaults } from "../options/defaults.ts"
import { limit, number, oneOf, scheduled } from "../options/field.ts"
import type { OptionsOf, ResolvedOf } from "../options/table.ts"
import { learningRateField, rateRules, type Settled } from "./learning-rate.ts"

/** Options of AdamW. */
export const optimizerFields = {
  learningRate: learningRateField(rateRules.training),
  // The first steps of AdamW have full length but are estimated from few gradients: without a warm-up a small model forgets everything.
  warmup: number(3, "Learning-rate warm-up in iterations (fractions allowed), over which the rate rises from 0.", {
    min: 0,
  }),
  schedule: oneOf(
    "constant",
    ["constant", "linear", "cosine"],
    "Learning-rate schedule after the warm-up: constant, or linear or cosine decay to 0 at the end of training.",
  ),
  weightDecay: scheduled(number(0.01, "Decoupled weight decay, applied to matrices only.", { min: 0 })),
  beta1: number(0.9, "Decay rate of the running mean of gradients.", { min: 0, below: 1 }),
  beta2: number(0.999, "Decay rate of the running mean of squared gradients.", { min: 0, below: 1 }),
  epsilon: number(1e-8, "Constant added to the denominator of AdamW's step.", { above: 0 }),
  maxGradientNorm: scheduled(
    limit(1, "Maximum gradient norm (gradient clipping). Infinity turns it off.", { above: 0 }),
  ),
}

/** Options of AdamW in supervised fine-tuning. The cosine schedule lowers the rate in the last steps, which determine the final loss. */
export const sftOptimizerFields = withDefaults(
  {
    ...optimizerFields,
    learningRate: learningRateField(rateRules.cloning),
    warmup: number(
      undefined,
      "Learning-rate warm-up in epochs (fractions allowed), over which the rate rises from 0.",
      {
        min: 0,
        defaultText: "a twentieth of all epochs",
      },
    ),
  },
  { schedule: "cosine" },
)

/** Options of AdamW and its learning rate schedule. */
export type OptimizerOptions = OptionsOf<typeof optimizerFields>
export type ResolvedOptimizerOptions = ResolvedOf<typeof optimizerFields>
/** Options of AdamW with a learning rate. */
export type SettledOptimizerOptions = Settled<ResolvedOptimizerOptions>
