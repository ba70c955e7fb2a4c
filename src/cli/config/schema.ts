import { z } from "zod"
import { evaluationDefaults, optimizerDefaults, rolloutDefaults } from "../../training/defaults.ts"
import type { Config } from "./config.ts"

// Every key of a configuration file. What describes a key is the comment of the option that it sets, word for word.

const whole = (least: number) => z.int().min(least)
const share = () => z.number().min(0).max(1)
const limit = () =>
  z.union([z.number().positive(), z.literal(Number.POSITIVE_INFINITY)], {
    error: "must be a number above 0, or .inf to turn it off",
  })

const rollout = z.strictObject({
  temperature: z.number().positive().default(rolloutDefaults.temperature).describe("Sampling temperature. Default 1."),
  maxReplyTokens: whole(1).default(rolloutDefaults.maxReplyTokens).describe("Most tokens of one reply. Default 512."),
  concurrency: whole(1)
    .default(rolloutDefaults.concurrency)
    .describe("Episodes in flight at once; changes speed only, never the result. Default 128."),
  maxSteps: whole(1)
    .default(rolloutDefaults.maxSteps)
    .describe(
      "Steps after which an episode is cut off, for environments that set no limit of their own. Default 1000.",
    ),
  environmentTimeout: z
    .number()
    .positive()
    .default(rolloutDefaults.environmentTimeout)
    .describe("An episode whose environment takes longer than this for one call, in seconds, has failed. Default 60."),
})

const similarity = z.union([share(), z.strictObject({ threshold: share(), autojunk: z.boolean().exactOptional() })], {
  error: "must be a number from 0 to 1, or { threshold: number, autojunk: true or false }",
})

const estimator = z.strictObject({
  name: z.enum(["gigpo", "grpo"]).default("gigpo"),
  gamma: share().default(0.95).describe("Discount of the step returns, in (0, 1]. Default 0.95."),
  omega: z.number().min(0).default(1).describe("Weight of the step advantage, at least 0. Default 1."),
  similarity: similarity
    .exactOptional()
    .describe(
      "Put steps with similar anchors into one step group: the least ratio, in (0, 1], or more. Default: equal anchors only.",
    ),
  normalization: z.enum(["std", "none", "leaveOneOut"]).default("std").describe('Default "std".'),
  episodeStatistics: z
    .enum(["episodes", "steps"])
    .default("episodes")
    .describe(
      "What the mean and deviation of Eq. 3 run over: the episodes of the task, each once (the paper), or all their steps, " +
        'so that long episodes weigh more (the reference code). Default "episodes".',
    ),
  singletonEpisode: z
    .enum(["zero", "raw"])
    .default("zero")
    .describe(
      "Advantage of a value that is alone in its episode statistic: 0, or the return itself (the reference code). " +
        'Default "zero".',
    ),
  invalidActionPenalty: z
    .number()
    .min(0)
    .default(0)
    .describe("Taken off for every invalid step, at least 0, in units of reward. Default 0."),
  penaltyPlacement: z
    .enum(["reward", "row"])
    .default("reward")
    .describe(
      "Where the penalty goes: into the step's reward, and so into its episode's return and all earlier discounted returns " +
        '(the paper), or only into the scores of the invalid row itself (the reference code). Default "reward".',
    ),
})

const loss = z.strictObject({
  clipLow: share().default(0.2).describe("Ratio is kept above 1 - clipLow. Default 0.2."),
  clipHigh: z.number().min(0).default(0.2).describe("Ratio is kept below 1 + clipHigh. Default 0.2."),
  clipDual: limit()
    .default(3)
    .describe(
      "Dual clip: with a negative advantage the loss is at most -clipDual × advantage. Default 3; Infinity turns it off.",
    ),
  klWeight: z.number().min(0).default(0).describe("Weight of the KL term. Default 0."),
  klEstimator: z
    .enum(["k1", "k2", "k3"])
    .default("k3")
    .describe(
      "Estimator of KL(policy ‖ reference) per token, with d = log p_ref - log p: k1 = -d, k2 = d²/2, k3 = e^d - d - 1. " +
        "Default k3.",
    ),
  entropyWeight: z.number().default(0).describe("Weight of the entropy bonus. Default 0."),
  aggregation: z
    .enum(["token-mean", "sequence-mean-token-sum", "sequence-mean-token-mean"])
    .default("token-mean")
    .describe('Default "token-mean".'),
  ratio: z
    .enum(["token", "sequence"])
    .default("token")
    .describe('The importance ratio of each token, or GSPO\'s one ratio for the whole reply. Default "token".'),
  // No default here: training and the bare loss differ in it.
  skipZeroAdvantage: z
    .boolean()
    .exactOptional()
    .describe(
      "Rows with advantage 0 have no gradient where there is neither a KL nor an entropy term. With this they count in the " +
        "loss's normalisation but are not computed, and the report is over the others. Default false.",
    ),
})

const optimizer = z.strictObject({
  learningRate: z
    .number()
    .min(0)
    .default(optimizerDefaults.learningRate)
    .describe("Default 1e-6, which suits a pretrained model; a small one from scratch wants about 3e-4."),
  warmup: whole(0)
    .default(optimizerDefaults.warmup)
    .describe("Iterations over which the learning rate rises from 0. Default 0."),
  schedule: z
    .enum(["constant", "linear", "cosine"])
    .default(optimizerDefaults.schedule)
    .describe(
      'After the warm-up: stay, or fall linearly or as a cosine to 0 at the last iteration. Default "constant".',
    ),
  weightDecay: z.number().min(0).default(optimizerDefaults.weightDecay).describe("Default 0.01."),
  beta1: share().default(optimizerDefaults.beta1).describe("Default 0.9."),
  beta2: share().default(optimizerDefaults.beta2).describe("Default 0.999."),
  maxGradientNorm: limit().default(optimizerDefaults.maxGradientNorm).describe("Default 1."),
})

const evaluation = z.strictObject({
  every: whole(0)
    .default(0)
    .describe(
      "Evaluate before the first and after every so many iterations; the last is always evaluated. 0: never. Default 0.",
    ),
  tasks: whole(1).default(evaluationDefaults.tasks).describe("Held-out tasks, one episode each. Default 256."),
  temperature: z
    .number()
    .min(0)
    .default(evaluationDefaults.temperature)
    .describe("Default 0.4, as the paper evaluates; 0 takes the most likely token."),
})

const training = z.strictObject({
  iterations: whole(1).default(150).describe("Default 150."),
  groups: whole(1).default(16).describe("Tasks of one iteration. Default 16."),
  groupSize: whole(1).default(8).describe("Episodes of each task. Default 8."),
  batchRows: whole(1).default(256).describe("Rows (steps of episodes) of one optimizer step. Default 256."),
  epochs: whole(1).default(1).describe("Passes over an iteration's rows. Default 1."),
  rollout: rollout.prefault({}).describe("How episodes are sampled."),
  estimator: estimator.prefault({}).describe("How episodes become advantages. `grpo` has the episode level alone."),
  loss: loss.prefault({}).describe("PPO's clipped surrogate with dual clip and a KL term to the reference policy."),
  optimizer: optimizer.prefault({}),
  evaluation: evaluation.prefault({}),
  checkpointEvery: whole(1)
    .default(25)
    .describe("Write a checkpoint after every so many iterations; the last always is. Default 25."),
  keepCheckpoints: whole(1).default(2).describe("Checkpoints to keep. Default 2."),
})

const clone = z.strictObject({
  tasks: whole(1).default(1000).describe("Tasks that the expert solves to learn from. Default 1000."),
  epochs: whole(1).default(10).describe("Passes over the expert's steps. Default 10."),
  batchRows: whole(1).default(64).describe("Rows of one optimizer step. Default 64."),
  optimizer: optimizer.prefault({}),
})

const initialize = z.strictObject({
  hiddenSize: whole(1).default(128).describe("Default 128."),
  layers: whole(1).default(4).describe("Default 4."),
  heads: whole(1).default(4).describe("Default 4."),
  keyValueHeads: whole(1).exactOptional().describe("Default: as many as heads."),
  intermediateSize: whole(1).exactOptional().describe("Default 3 × hiddenSize."),
  deviation: z
    .number()
    .positive()
    .exactOptional()
    .describe("Standard deviation of the initial weights. Default 1 / √hiddenSize."),
  vocabularySize: whole(1)
    .default(512)
    .describe("Most tokens of the tokenizer that is learned from the environment's texts. Default 512."),
  maxPositions: whole(1)
    .exactOptional()
    .describe("Longest prompt and reply together. Default: four times the longest prompt that was seen, at least 256."),
})

const lora = z.strictObject({
  rank: whole(1).describe("Rows of A; 16 to 64 are usual."),
  alpha: z
    .number()
    .positive()
    .exactOptional()
    .describe("The pair's output is scaled by alpha / rank. Default 2 × rank."),
})

/** A configuration file. `gigpo` and `run` may be missing from what comes out; `resolveConfig` sees to them. */
export const configSchema: z.ZodObject & z.ZodType<Omit<Config, "run"> & { run?: string; gigpo?: string }> =
  z.strictObject({
    gigpo: z.string().exactOptional().describe("The version that wrote the file; not read."),
    model: z.string().min(1).describe("Hugging Face model folder: config.json, safetensors, tokenizer."),
    environment: z
      .looseObject({ name: z.string() })
      .describe("Which environment; its own options stand beside the name."),
    run: z
      .string()
      .min(1)
      .exactOptional()
      .describe(
        "Folder of the run: metrics, checkpoints and the trained model. Default: runs/ and the environment's name.",
      ),
    seed: whole(0).default(0).describe("The root of every random number. Default 0."),
    device: z
      .enum(["auto", "cpu", "cuda"])
      .exactOptional()
      .describe(
        '"auto" (the default) takes the first NVIDIA GPU that can be used, else the CPU. "cuda" without one fails with the ' +
          "reason.",
      ),
    precision: z
      .enum(["float32", "bfloat16"])
      .exactOptional()
      .describe(
        'Numbers that are computed with; what is trained is kept in float32 beside them. Default "bfloat16" on a GPU and ' +
          '"float32" on the CPU, which has no other.',
      ),
    threads: whole(1).exactOptional().describe("Threads that compute. Default: every core."),
    maxPositions: whole(1)
      .exactOptional()
      .describe("Longest sequence, prompt and reply together. Default: the model's own limit."),
    microBatchTokens: whole(1)
      .exactOptional()
      .describe(
        "Tokens trained at once; more takes more memory and changes nothing else. Default 2048, on a GPU 16384.",
      ),
    cacheBytes: whole(1)
      .exactOptional()
      .describe(
        "Memory for keys and values while sampling, in bytes. Default 256 MiB, on a GPU what 256 sequences of 4096 tokens " +
          "take, or what is left.",
      ),
    recompute: z
      .enum(["auto", "none", "norms", "mlp", "block"])
      .exactOptional()
      .describe(
        "What the backward pass computes again instead of keeping it: nothing, the inputs of the multiplications, also the " +
          "inside of the feed-forward network, or the whole layer. Each saves memory and costs time, up to a third of " +
          'training; the results are the same. Default "auto": the least that fits.',
      ),
    moments: z
      .enum(["float32", "bfloat16"])
      .exactOptional()
      .describe('How AdamW\'s moments are kept; bfloat16 halves their memory and rounds them. Default "float32".'),
    lora: lora
      .exactOptional()
      .describe("Train a low-rank adapter (LoRA) and leave the model as it is. Default: all weights are trained."),
    training: training.prefault({}),
    clone: clone.prefault({}),
    initialize: initialize
      .prefault({})
      .describe("The shape of a small Qwen3-like model (no biases, norms on queries and keys, tied embeddings)."),
  })
