import { withDefaults } from "../options/defaults.ts"
import { limit, number, oneOf, scheduled } from "../options/field.ts"
import type { OptionsOf, Resolved } from "../options/table.ts"
import { learningRateField, rateRules, type Settled } from "./learning-rate.ts"

/** How AdamW takes its steps. */
export const optimizerFields = {
  learningRate: learningRateField(rateRules.training),
  // AdamW's first steps are as long as any and go by a few gradients: a small model at a rate that suits it later forgets everything.
  warmup: number(3, "Iterations, also parts of one, over which the learning rate rises from 0.", { min: 0 }),
  schedule: oneOf(
    "constant",
    ["constant", "linear", "cosine"],
    "After the warm-up: stay, or fall linearly or as a cosine to 0 at the last iteration.",
  ),
  weightDecay: scheduled(number(0.01, "Decoupled decay, applied to matrices only.", { min: 0 })),
  beta1: number(0.9, "Decay of AdamW's mean of gradients.", { min: 0, below: 1 }),
  beta2: number(0.999, "Decay of AdamW's mean of squared gradients.", { min: 0, below: 1 }),
  epsilon: number(1e-8, "Added to the root of the mean of squares that AdamW divides by.", { above: 0 }),
  maxGradientNorm: scheduled(limit(1, "Gradients are scaled down to this norm. Infinity turns it off.", { above: 0 })),
}

/** In cloning, whose end is known, and whose last steps say how well it ends. */
export const sftOptimizerFields = withDefaults(
  {
    ...optimizerFields,
    learningRate: learningRateField(rateRules.cloning),
    warmup: number(undefined, "Epochs, also parts of one, over which the learning rate rises from 0.", {
      min: 0,
      defaultText: "a twentieth of all",
    }),
  },
  { schedule: "cosine" },
)

/** Options of AdamW and its learning rate schedule. */
export type OptimizerOptions = OptionsOf<typeof optimizerFields>
export type ResolvedOptimizerOptions = Resolved<typeof optimizerFields>
/** With a learning rate. */
export type SettledOptimizerOptions = Settled<ResolvedOptimizerOptions>
