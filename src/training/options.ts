import type { GigpoOptions } from "../credit/types.ts"
import type { PolicyLossOptions } from "../engine/engine.ts"

/** How episodes are sampled. */
export interface RolloutOptions {
  /** Sampling temperature. Default 1. */
  readonly temperature?: number
  /** Most tokens of one reply. Default 512. */
  readonly maxReplyTokens?: number
  /** Episodes in flight at once; changes speed only, never the result. Default 128. */
  readonly concurrency?: number
  /** Steps after which an episode is cut off, for environments that set no limit of their own. Default 1000. */
  readonly maxSteps?: number
  /** An episode whose environment takes longer than this for one call, in seconds, has failed. Default 60. */
  readonly environmentTimeout?: number
}

/** How episodes become advantages. `grpo` has the episode level alone. */
export type EstimatorOptions = { readonly name?: "gigpo" | "grpo" } & GigpoOptions

export interface OptimizerOptions {
  /** Default 1e-6, which suits a pretrained model; a small one from scratch wants about 3e-4. */
  readonly learningRate?: number
  /** Iterations over which the learning rate rises from 0. Default 0. */
  readonly warmup?: number
  /** After the warm-up: stay, or fall linearly or as a cosine to 0 at the last iteration. Default "constant". */
  readonly schedule?: "constant" | "linear" | "cosine"
  /** Default 0.01. */
  readonly weightDecay?: number
  /** Default 0.9. */
  readonly beta1?: number
  /** Default 0.999. */
  readonly beta2?: number
  /** Default 1. */
  readonly maxGradientNorm?: number
}

export interface TrainOptions {
  /** The root of every random number. Default 0. */
  readonly seed?: number
  /** Default 150. */
  readonly iterations?: number
  /** Tasks of one iteration. Default 16. */
  readonly groups?: number
  /** Episodes of each task. Default 8. */
  readonly groupSize?: number
  /** Rows (steps of episodes) of one optimizer step. Default 256. */
  readonly batchRows?: number
  /** Passes over an iteration's rows. Default 1. */
  readonly epochs?: number
  readonly rollout?: RolloutOptions
  readonly estimator?: EstimatorOptions
  readonly loss?: PolicyLossOptions
  readonly optimizer?: OptimizerOptions
  readonly evaluation?: EvaluationOptions & {
    /** Evaluate before the first and after every so many iterations; the last is always evaluated. 0: never. Default 0. */
    readonly every?: number
  }
  /** Write a checkpoint after every so many iterations; the last always is. Default 25. */
  readonly checkpointEvery?: number
  /** Checkpoints to keep. Default 2. */
  readonly keepCheckpoints?: number
}

export interface EvaluationOptions {
  /** Held-out tasks, one episode each. Default 256. */
  readonly tasks?: number
  /** Default 0.4, as the paper evaluates; 0 takes the most likely token. */
  readonly temperature?: number
}

export interface CloneOptions {
  /** The root of every random number. Default 0. */
  readonly seed?: number
  /** Tasks that the expert solves to learn from. Default 1000. */
  readonly tasks?: number
  /** Passes over the expert's steps. Default 10. */
  readonly epochs?: number
  /** Rows of one optimizer step. Default 64. */
  readonly batchRows?: number
  readonly optimizer?: OptimizerOptions
}

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
