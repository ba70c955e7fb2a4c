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
