import type { EvaluationOptions, OptimizerOptions, RolloutOptions } from "./options.ts"

export const rolloutDefaults: Required<RolloutOptions> = {
  temperature: 1,
  maxReplyTokens: 512,
  concurrency: 128,
  maxSteps: 1000,
  environmentTimeout: 60,
}

export const optimizerDefaults: Required<OptimizerOptions> = {
  learningRate: 1e-6,
  warmup: 0,
  schedule: "constant",
  weightDecay: 0.01,
  beta1: 0.9,
  beta2: 0.999,
  maxGradientNorm: 1,
}

export const evaluationDefaults: Required<EvaluationOptions> = { tasks: 256, temperature: 0.4 }
