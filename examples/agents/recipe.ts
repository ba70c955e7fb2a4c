import type { InitializeModelOptions, SftOptions, TrainOptions } from "gigpo"

// Small enough for minutes on a CPU: a model made from nothing, a start from an expert in a hurry, whose haste it learns, too, and
// reinforcement learning from there.

export const shape: InitializeModelOptions = {
  hiddenSize: 96,
  layers: 2,
  heads: 4,
  vocabularySize: 640,
  maxPositions: 1024,
}

export const sftOptions: SftOptions = {
  tasks: 2400,
  epochs: 5,
  completionsPerUpdate: 16,
  optimizer: { learningRate: 2e-3, schedule: "cosine" },
}

export const training: TrainOptions = {
  iterations: 25,
  groups: 16,
  groupSize: 8,
  stepsPerUpdate: 128,
  rollout: { maxCompletionTokens: 64 },
  estimator: { normalization: "none", invalidActionPenalty: 0.1 },
}

/** How many held-out questions tell what it has learned. */
export const heldOut = { tasks: 192 }
