import { basename } from "node:path"

/** What stands in a run's folder. */
export const runFiles = {
  config: "config.json",
  metrics: "metrics.jsonl",
  /** Of what run it is a fork. */
  fork: "fork.json",
  lock: "run.lock",
  checkpoints: "checkpoints",
  model: "model",
} as const

/** What a model is written as, with what is copied beside it; one too large for a file has others in place of its weights. */
export const modelNames = (copied: readonly string[] = []): string[] => [
  "config.json",
  "model.safetensors",
  ...copied.map((file) => basename(file)),
]
