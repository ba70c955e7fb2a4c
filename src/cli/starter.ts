import { GigpoError } from "../errors.ts"

/** A first configuration for an environment: a model small enough to be trained on a CPU, from nothing. */
export function starterConfig(environment: string, model: string, run: string): string {
  const settings = starters[environment]
  if (settings === undefined) {
    throw new GigpoError(
      "BAD_ARGUMENT",
      `${environment} is no environment for a small model made from nothing (${starterNames.join(", ")} are). ` +
        "Use a pretrained model and write a configuration; `gigpo config` lists its keys.",
    )
  }
  return `# Paths are relative to the directory in which gigpo is started. \`gigpo config\` explains every key.
model: ${JSON.stringify(model)}
run: ${JSON.stringify(run)}
seed: 0

${settings}`
}

const starters: Readonly<Record<string, string>> = {
  sokoban: `environment:
  name: sokoban
  size: [6, 6]
  boxes: 1
  # A model that has read nothing cannot use rules or thoughts: it is shown the grid alone.
  rules: false
  thinking: off
  history: 0

# gigpo init: the shape of the model
initialize:
  hiddenSize: 128
  layers: 4
  heads: 4
  vocabularySize: 512

# gigpo clone: a start from the expert's moves
clone:
  tasks: 240
  epochs: 6
  batchRows: 16
  optimizer:
    learningRate: 1e-3
    schedule: cosine
    warmup: 10

# gigpo train
training:
  iterations: 60
  groups: 48
  groupSize: 8
  batchRows: 1024
  rollout:
    maxReplyTokens: 8
  estimator:
    name: gigpo
    normalization: none
    invalidActionPenalty: 0.1
  optimizer:
    learningRate: 1e-4
    warmup: 5
  evaluation:
    every: 20
    tasks: 256
  checkpointEvery: 10
`,
}

/** Environments that `starterConfig` knows. */
export const starterNames: readonly string[] = Object.keys(starters)
