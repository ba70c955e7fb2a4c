import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { checkAdamW } from "./check-arguments.ts"
import type { AdamWParameters } from "./engine.ts"

/** AdamW options with all defaults set. */
export type CompleteStep = { readonly [Key in keyof AdamWParameters]-?: NonNullable<AdamWParameters[Key]> }

const stepKeys: KeysOf<AdamWParameters> = {
  learningRate: true,
  beta1: true,
  beta2: true,
  epsilon: true,
  weightDecay: true,
  maxGradientNorm: true,
}

/** Returns checked AdamW options with defaults. Throws `BAD_ARGUMENT`. */
export function completeStep(step: AdamWParameters): CompleteStep {
  checkArguments("optimizerStep", step, stepKeys)
  const { learningRate, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weightDecay = 0, maxGradientNorm = 1 } = step
  const complete = { learningRate, beta1, beta2, epsilon, weightDecay, maxGradientNorm }
  checkAdamW(complete)
  return complete
}
