import { gigpoFields, grpoFields, ownEstimator } from "../credit/options.ts"
import { lowestTemperature } from "../engine/check-arguments.ts"
import { clippedSurrogateFields, lossFields, ownLoss } from "../loss/options.ts"
import { choice, field, group, limit, number, oneOf, scheduled, whole } from "../options/field.ts"
import type { OptionsOf, Resolved } from "../options/table.ts"
import { rolloutFields } from "../rollout/options.ts"

const seed = whole(0, "The root of every random number.", { least: 0 })

export const optimizerFields = {
  learningRate: scheduled(
    number(1e-6, "The default suits a pretrained model; a small one from scratch wants about 3e-4.", { least: 0 }),
  ),
  warmup: number(0, "Iterations (in cloning: epochs, also parts of one) over which the learning rate rises from 0.", {
    least: 0,
  }),
  schedule: oneOf(
    "constant",
    ["constant", "linear", "cosine"],
    "After the warm-up: stay, or fall linearly or as a cosine to 0 at the last iteration.",
  ),
  weightDecay: scheduled(number(0.01, "Decoupled decay, applied to matrices only.", { least: 0 })),
  beta1: number(0.9, "Decay of AdamW's mean of gradients.", { least: 0, below: 1 }),
  beta2: number(0.999, "Decay of AdamW's mean of squared gradients.", { least: 0, below: 1 }),
  epsilon: number(1e-8, "Added to the root of the mean of squares that AdamW divides by.", { above: 0 }),
  maxGradientNorm: scheduled(limit(1, "Gradients are scaled down to this norm. Infinity turns it off.", { above: 0 })),
}

export const evaluationFields = {
  tasks: whole(256, "Held-out tasks, one episode each.", { least: 1 }),
  temperature: field<number, "The default is the paper's; 0 takes the most likely token.">(
    0.4,
    "The default is the paper's; 0 takes the most likely token.",
    (value) =>
      value === 0 || (Number.isFinite(value) && (value as number) >= lowestTemperature)
        ? undefined
        : `must be 0, for the most likely token, or at least ${lowestTemperature}`,
  ),
}

const estimator = choice(
  "gigpo",
  { gigpo: gigpoFields, grpo: grpoFields },
  "How episodes become advantages. `grpo` has the episode level alone.",
  { own: ownEstimator },
)

const loss = choice(
  "clipped-surrogate",
  { "clipped-surrogate": clippedSurrogateFields },
  "The policy's loss: PPO's clipped surrogate with dual clip. A KL term to the reference policy and an entropy bonus stand " +
    "around any loss.",
  { own: ownLoss, common: lossFields },
)

export const trainFields = {
  seed,
  iterations: whole(150, "Rounds of playing, credit and updates.", { least: 1 }),
  groups: whole(16, "Tasks of one iteration.", { least: 1 }),
  groupSize: whole(8, "Episodes of each task.", { least: 1 }),
  batchRows: whole(256, "Steps of episodes of one optimizer step.", { least: 1 }),
  epochs: whole(1, "Passes over an iteration's steps.", { least: 1 }),
  unit: oneOf(
    "span",
    ["span", "row"],
    "What counts as a sequence, in ratios and in means: the reply of one step, or all replies of a conversation that only grows.",
  ),
  rollout: group(rolloutFields, "How episodes are sampled."),
  estimator,
  loss,
  optimizer: group(optimizerFields, "How AdamW takes its steps."),
  evaluation: group(
    {
      every: whole(
        0,
        "Evaluate before the first and after every so many iterations; the last is always evaluated. 0: never.",
        { least: 0 },
      ),
      ...evaluationFields,
    },
    "How held-out tasks are played.",
  ),
  checkpointEvery: whole(25, "Write a checkpoint after every so many iterations; the last always is.", { least: 1 }),
  keepCheckpoints: whole(2, "Checkpoints to keep.", { least: 1 }),
}

/** Of `evaluate`, where the temperature beside the tasks counts, not the rollout's. */
export const evaluateFields = {
  seed,
  ...evaluationFields,
  rollout: group(rolloutFields, "How episodes are sampled."),
}

export const cloneFields = {
  seed,
  tasks: whole(1000, "Tasks that the expert solves to learn from.", { least: 1 }),
  epochs: whole(10, "Passes over the expert's steps.", { least: 1 }),
  batchRows: whole(64, "Steps of one optimizer step.", { least: 1 }),
  optimizer: group(optimizerFields, "How AdamW takes its steps."),
}

/** The shape of a small Qwen3-like model (no biases, norms on queries and keys, tied embeddings). */
export const initializeFields = {
  seed,
  hiddenSize: whole(128, "Numbers that a token is to the model; a multiple of 2 × heads.", { least: 1 }),
  layers: whole(4, "Layers of attention and feed-forward network.", { least: 1 }),
  heads: whole(4, "Attention heads of each layer.", { least: 1 }),
  keyValueHeads: whole(undefined, "Heads of keys and values, which heads share.", {
    least: 1,
    otherwise: "as many as heads",
  }),
  intermediateSize: whole(undefined, "Width of the feed-forward network.", { least: 1, otherwise: "3 × hiddenSize" }),
  deviation: number(undefined, "Standard deviation of the initial weights.", {
    above: 0,
    otherwise: "1 / √hiddenSize",
  }),
  vocabularySize: whole(512, "Most tokens of the tokenizer that is learned from the environment's texts.", {
    least: 1,
  }),
  maxPositions: whole(undefined, "Longest prompt and reply together.", {
    least: 1,
    otherwise: "four times the longest prompt that was seen, at least 256",
  }),
}

export type TrainOptions = OptionsOf<typeof trainFields>
export type EstimatorOptions = NonNullable<TrainOptions["estimator"]>
export type LossOptions = NonNullable<TrainOptions["loss"]>
export type OptimizerOptions = OptionsOf<typeof optimizerFields>
export type EvaluationOptions = OptionsOf<typeof evaluationFields>
export type EvaluateOptions = OptionsOf<typeof evaluateFields>
export type CloneOptions = OptionsOf<typeof cloneFields>
export type InitializeOptions = OptionsOf<typeof initializeFields>
export type ResolvedTrainOptions = Resolved<typeof trainFields>
export type ResolvedOptimizerOptions = Resolved<typeof optimizerFields>
export type { RolloutOptions } from "../rollout/options.ts"

/** What is known of one iteration; one line of metrics.jsonl. Numbers that do not apply are absent. */
export interface IterationReport {
  readonly iteration: number
  /** Names with a slash, e.g. "episode/success", "loss/policy", "time/rollout"; units are seconds, tokens, shares. */
  readonly metrics: Readonly<Record<string, number>>
  readonly evaluation?: EvaluationReport
}

export interface EvaluationReport {
  readonly episodes: number
  readonly failed: number
  /** Share of episodes with metric `success` = 1, and its 95 % interval (Wilson). */
  readonly success: number
  readonly successInterval: readonly [number, number]
  readonly meanReturn: number
  readonly meanSteps: number
  readonly metrics: Readonly<Record<string, number>>
}
