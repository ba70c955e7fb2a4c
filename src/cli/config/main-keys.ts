import { sinks } from "../../view/sinks/sinks.ts"

/** Keys that most configurations set or look up, in configuration order, as `gigpo config` shows them. */
export const mainKeys: readonly { readonly title: string; readonly keys: readonly string[] }[] = [
  {
    title: "Model, environment and run",
    keys: ["model", "environment.name", "agent.name", "agent.command", "run", "seed"],
  },
  { title: "Hardware", keys: ["device", "precision", "threads", "kvCacheBytes", "recompute"] },
  {
    title: "Remote engine or LoRA",
    keys: ["engine.url", "engine.model", "engine.rank", "lora.rank", "lora.alpha", "lora.targetModules"],
  },
  {
    title: "Training (gigpo train)",
    keys: under("training", [
      ...["iterations", "groups", "groupSize", "dynamicSampling", "stepsPerUpdate", "epochs", "unit", "maxStaleness"],
    ]),
  },
  {
    title: "Rollout",
    keys: under("training.rollout", [
      "temperature",
      "maxCompletionTokens",
      "maxSteps",
      "concurrency",
      "environmentTimeout",
    ]),
  },
  {
    title: "Advantages",
    keys: under("training.estimator", ["name", "gamma", "omega", "normalization", "similarity"]),
  },
  {
    title: "Loss",
    keys: under("training.loss", [
      "name",
      "clipLow",
      "clipHigh",
      "klWeight",
      "klEstimator",
      "entropyWeight",
      "aggregation",
    ]),
  },
  {
    title: "Optimizer",
    keys: under("training.optimizer", ["learningRate", "warmup", "schedule", "weightDecay", "maxGradientNorm"]),
  },
  {
    title: "Evaluation, checkpoints and guards",
    keys: under("training", [
      ...["evaluation.every", "evaluation.tasks", "evaluation.temperature", "checkpointEvery", "keepCheckpoints"],
      ...["stop.plateau", "stop.seconds", "guards.collapse"],
    ]),
  },
  { title: "Logging", keys: [...Object.values(sinks).map(({ mainKey }) => mainKey), "recording.every"] },
  {
    title: "Supervised fine-tuning (gigpo sft)",
    keys: under("sft", ["data", "tasks", "epochs", "completionsPerUpdate", "optimizer.learningRate"]),
  },
  {
    title: "Small model from scratch (gigpo init)",
    keys: under("initialModel", ["hiddenSize", "layers", "heads", "vocabularySize"]),
  },
]

function under(group: string, keys: readonly string[]): readonly string[] {
  return keys.map((key) => `${group}.${key}`)
}
