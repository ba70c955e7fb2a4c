import type { Json } from "../util/state.ts"
import type { Sequence } from "./sequence.ts"

// Interfaces between training and an engine. The loop, evaluation, SFT and checkpoints use only these, and no engine by
// name.

/** Request for one completion. Prompts and completions are token ids: text is never tokenized twice. */
export interface SampleRequest {
  /** Token ids of the prompt, at least one. */
  readonly prompt: Int32Array
  /** Non-text inputs of the prompt, such as images. */
  readonly attachments?: readonly unknown[]
  /** Maximum tokens to sample, including a stop token. */
  readonly maxTokens: number
  /** Sampling temperature. Default 1. 0 is greedy decoding (log-probabilities are then those at temperature 1). */
  readonly temperature?: number | undefined
  /** Tokens that end sampling; the stop token is part of the completion. */
  readonly stopTokens: readonly number[]
  /** Key of the completion's random numbers, two 32-bit words; see `Random.derive`. */
  readonly key: readonly [number, number]
  /** Constraint of the completion (a grammar), in the engine's own form. */
  readonly constraint?: unknown
  /**
   * Receives tokens as they are sampled, in order and each once, if the engine supports it; the completion contains all
   * of them. Return true if no more are needed: the engine may then end the completion, possibly after some more
   * tokens. An exception fails the call.
   */
  readonly onTokens?: ((tokens: Int32Array) => unknown) | undefined
  /** Number of most likely tokens to return per position, at most 20, if the engine supports it. Default 0. */
  readonly topTokens?: number | undefined
  /**
   * Number of the client. Clients with different numbers get equal shares of the engine, if the engine supports it.
   * Default 0: requests of unknown clients, which share the capacity that other clients do not use.
   */
  readonly client?: number | undefined
  /**
   * Number of the client's group. Groups get equal shares of the engine, and clients of a group divide its share.
   * Clients of different groups have different numbers. Default: the client's number.
   */
  readonly group?: number | undefined
  /** Signal that aborts sampling. */
  readonly signal?: AbortSignal | undefined
}

/** Sampled completion of one prompt. */
export interface Completion {
  /** Sampled token ids, [tokens], with the stop token. */
  readonly tokens: Int32Array
  /** Log-probability of each sampled token under the distribution that it was sampled from. */
  readonly logProbs: Float32Array
  /**
   * Entropy, in nats, of the distribution that each token was sampled from (with temperature and constraint applied), [tokens], if the engine reports
   * it. At temperature 0, the entropy at temperature 1.
   */
  readonly entropies?: Float32Array
  /** Reason for the end: a stop token ("stop") or the maximum length ("length"). */
  readonly finishReason: "stop" | "length"
  /**
   * Most likely tokens per position, [tokens], most likely first, if requested: ids as `token`, log-probabilities as `logProb`. Probabilities are
   * those of the distribution that was sampled from; a constraint may leave fewer tokens.
   */
  readonly top?: readonly (readonly { readonly token: number; readonly logProb: number }[])[]
  /** Version of the weights used for sampling, for engines whose sampler may lag behind the trainer. */
  readonly version?: number | string
}

/** Engine, or part of one, that generates completions. */
export interface Sampler {
  /** Number of token ids. */
  readonly vocabularySize: number
  /** Maximum tokens of prompt and completion together. */
  readonly maxPositions: number
  /**
   * Whether `SampleRequest.key` determines all random numbers, so that runs can be repeated and resumed bit by bit.
   */
  readonly deterministic: boolean
  /** Samples a completion. Calls may run concurrently. Rejects with the reason of the signal if it is aborted. */
  sample(request: SampleRequest): Promise<Completion>
}

/** Sampler of a policy's weights at one moment. Updates of the policy do not change it. */
export interface SamplerSnapshot extends Sampler, Pick<Trainable, "logProbs">, AsyncDisposable {
  /**
   * Writes the weights into an empty folder, or keeps them elsewhere. The returned handle is stored in the manifest of
   * the checkpoint and passed to `Snapshots.open`. Disposal of the snapshot does not remove kept weights.
   */
  save(directory: string): Promise<Json>
}

/** Snapshots of a policy's weights, for rollouts during updates (`training.maxStaleness`). */
export interface Snapshots {
  /** Returns a sampler of the current weights. */
  take(): Promise<SamplerSnapshot>
  /** Opens a snapshot from the handle that `SamplerSnapshot.save` returned. */
  open(handle: Json, directory: string): Promise<SamplerSnapshot>
}

/**
 * Name of a statistic of the distribution at every sampled token, besides the token's log-probability: "entropy" in nats;
 * "hellinger", the Hellinger distance from the frozen reference, √(1 - Σ √(p p_ref)); "top", log-probabilities of other
 * tokens.
 */
export type TokenStatisticName = "entropy" | "hellinger" | "top"

/**
 * Statistics of sampled tokens as flat columns, [sampled tokens of all sequences]: sequences and their segments in
 * order.
 */
export interface TokenStatistics {
  /** Log-probability of each sampled token, [sampled tokens of all sequences]. */
  readonly logProbs: Float32Array
  /** Present if "entropy" was requested. */
  readonly entropies?: Float32Array
  /** Present if "hellinger" was requested. */
  readonly hellingers?: Float32Array
  /** Present if "top" was requested. */
  readonly top?: TopTokens
}

/** Several tokens per position with log-probabilities: [sampled tokens × count], those of a position together. */
export interface TopTokens {
  /** Number of tokens per position. */
  readonly count: number
  /** Token ids, [positions × count]. */
  readonly tokens: Int32Array
  /** Their log-probabilities, [positions × count]. */
  readonly logProbs: Float32Array
}

/** Options of an engine's `logProbs`. */
export interface LogProbsOptions {
  /** Model: "current" (default), "reference" (the frozen policy), or another model that the engine knows by name. */
  readonly model?: string | undefined
  /** Statistics to compute besides log-probabilities. Default: none. */
  readonly needs?: readonly TokenStatisticName[] | undefined
  /**
   * Tokens of the statistic "top": the number of most likely ones per position, or given ones, [sampled tokens of all
   * sequences × count].
   */
  readonly top?: number | Pick<TopTokens, "count" | "tokens"> | undefined
  /** Temperature of the distribution. Default 1. */
  readonly temperature?: number | undefined
  /** Signal that aborts the computation. */
  readonly signal?: AbortSignal | undefined
}

/** Loss aggregation over the whole batch, not over a micro-batch. `SequenceUnit` defines what a sequence is. */
export type Aggregation =
  | "token-mean" // equal weight per token
  | "token-sum" // sum over tokens, without a division
  | "sequence-mean-token-sum" // mean over sequences of the sum over tokens
  | "sequence-mean-token-mean" // mean over sequences of the mean over tokens
  | "sequence-mean-fixed-length" // sum over tokens / (sequences × fixedLength): Dr. GRPO, arXiv 2503.20783

/**
 * Estimator of KL(policy ‖ reference) from a sampled token. With a plus: value of that estimator, gradient of k2. See
 * src/loss.
 */
export type KlEstimator = "k1" | "k2" | "k3" | "abs" | "k1+" | "k3+"

/**
 * Definition of a sequence in ratios and means of losses: the completion of one step, as in TRL ("completion"), or all completions of a
 * conversation that is trained on as one sequence of tokens ("conversation").
 */
export type SequenceUnit = "completion" | "conversation"

/**
 * Loss that an engine may support in its own kernel. All numbers are set: defaults belong to the options of the losses
 * (src/loss), of which these are the native form.
 */
export type NativeLoss = CrossEntropy | ClippedSurrogate

/** Negative mean log-probability of the sampled tokens, for supervised fine-tuning. */
export interface CrossEntropy {
  readonly kind: "cross-entropy"
  /** Temperature of the distribution. Default 1. */
  readonly temperature?: number | undefined
}

/** PPO's clipped surrogate with dual clip, a KL term to the reference policy and an entropy bonus; see src/loss. */
export interface ClippedSurrogate {
  readonly kind: "clipped-surrogate"
  /** Lower clip range ε: the ratio is clipped at 1 - clipLow. */
  readonly clipLow: number
  /** Upper clip range ε: the ratio is clipped at 1 + clipHigh. */
  readonly clipHigh: number
  /** Bound of the dual clip. Infinity turns it off. */
  readonly clipDual: number
  /** Importance ratio per token, or per sequence (GSPO). */
  readonly importanceSamplingLevel: "token" | "sequence"
  /** Weight β of the KL divergence from the reference policy. 0 turns it off. */
  readonly klWeight: number
  /** Estimator of the KL divergence per token. */
  readonly klEstimator: KlEstimator
  /** Weight of the entropy bonus. 0 turns it off. */
  readonly entropyWeight: number
  /** Aggregation of token losses to the loss of a batch. */
  readonly aggregation: Aggregation
  /** Divisor in tokens, at least 1, for "sequence-mean-fixed-length" only. */
  readonly fixedLength?: number | undefined
  /** Unit of a sequence. Default "completion". */
  readonly unit?: SequenceUnit | undefined
  /**
   * Whether to skip segments with advantage 0, which have no gradient without a KL or entropy term. Skipped segments
   * count in the normalization of the loss but are not computed; the report covers the others.
   */
  readonly skipZeroAdvantage: boolean
  /** Temperature of the distribution. Default 1. */
  readonly temperature?: number | undefined
}

/**
 * Gradient of any other loss with respect to the log-probabilities. No callback crosses into an engine: the trainer
 * takes the log-probabilities, evaluates the loss and passes these coefficients.
 */
export interface LinearLoss {
  readonly kind: "linear"
  /** d loss / d log p, [sampled tokens of all sequences]: sequences and their segments in order. */
  readonly coefficients: Float32Array
  /** d loss / d entropy, in the same layout. Default: none. */
  readonly entropyCoefficients?: Float32Array | undefined
  /** d loss / d log p of other tokens at the same positions; `logProbs` contains the coefficients. Default: none. */
  readonly top?: TopTokens | undefined
  /** Temperature of the distribution. Default 1. */
  readonly temperature?: number | undefined
}

/** Loss and statistics of one `forwardBackward`. */
export interface LossReport {
  /**
   * Value of the loss. 0 for a `LinearLoss`, whose value the engine does not receive; NaN if the engine reports none: the
   * trainer then computes it from `logProbs`.
   */
  readonly loss: number
  /** Number of sampled tokens that were computed. */
  readonly tokens: number
  /** Number of tokens, sampled or not, that went through the model. Absent if the engine does not report it. */
  readonly computedTokens?: number | undefined
  /** Number of tokens that were not computed, because of prefix sharing. */
  readonly reusedTokens?: number | undefined
  /**
   * Means over these tokens, by metric name: "policy/entropy"; for the clipped surrogate also "policy/clip-fraction"
   * (tokens whose clipped term is the larger one, before the dual clip), "policy/dual-clip-fraction" (tokens bounded by
   * the dual clip), "loss/kl" (to the reference, if given), "policy/kl" (old log p - log p) and "policy/ratio". Empty
   * if no token was computed.
   */
  readonly metrics: Readonly<Record<string, number>>
  /**
   * Log-probability of each token before the update, [sampled tokens of all sequences]; NaN for tokens that were not computed.
   * Absent if the engine does not report it.
   */
  readonly logProbs?: Float32Array | undefined
}

/** Hyperparameters of one AdamW step. */
export interface AdamWParameters {
  /** Learning rate, at least 0. */
  readonly learningRate: number
  /** Decay rate of the running mean of gradients, β₁. Default 0.9. */
  readonly beta1?: number | undefined
  /** Decay rate of the running mean of squared gradients, β₂. Default 0.999. */
  readonly beta2?: number | undefined
  /** Constant ε added to the denominator. Default 1e-8. */
  readonly epsilon?: number | undefined
  /** Decoupled weight decay, applied to matrices only (not to biases and norms). Default 0. */
  readonly weightDecay?: number | undefined
  /** Maximum gradient norm for gradient clipping. Default 1; Infinity turns it off. */
  readonly maxGradientNorm?: number | undefined
}

/** Statistics of one optimizer step. */
export interface OptimizerStepStatistics {
  /** Norm of the gradient before clipping; NaN if the engine does not report it. */
  readonly gradientNorm: number
  /** True if the norm was not finite: the weights are unchanged and the gradients were dropped. */
  readonly skipped: boolean
}

/** Requirements of a run, checked by `Trainable.check`. */
export interface EngineRequirements {
  /** Built-in loss, or "linear" if the trainer evaluates the loss. */
  readonly loss: NativeLoss | "linear"
  /** Whether a linear loss has coefficients of the entropy. */
  readonly entropyCoefficients: boolean
  /** Needed statistics of the policy's distribution. */
  readonly statistics: readonly TokenStatisticName[]
  /** Other models whose log-probabilities are needed: "reference", teachers. */
  readonly models: readonly string[]
  /** Whether a critic is trained. Default false. */
  readonly critic?: boolean | undefined
  /** Hyperparameters of the first optimizer step. */
  readonly optimizer: AdamWParameters
  /** Whether sequences may have several segments. */
  readonly severalSegments: boolean
  /** Whether the run saves checkpoints. */
  readonly checkpoints: boolean
  /** Temperature of the rollout at the start of training. Default 1. */
  readonly temperature?: number | undefined
}

/** Frozen model whose log-probabilities are the target in distillation. */
export type Teacher = Pick<Trainable, "vocabularySize" | "logProbs" | "frozenWeights">

/** Engine that can be trained. Heavy work runs off the event loop; calls run in the order they are made. */
export interface Trainable extends Sampler {
  /** Number of the model's weights, if the engine reports it. The default learning rate depends on it. */
  readonly parameters?: number
  /** Configuration of the LoRA adapter, if one is trained. Its default learning rate is ten times that of the whole model. */
  readonly lora?: object | undefined
  /** Built-in losses that the engine computes itself; any other loss is passed as a `LinearLoss`. */
  readonly losses: readonly NativeLoss["kind"][]
  /** Whether the engine supports a built-in loss with these settings. Default: all. */
  supports?(loss: NativeLoss): boolean
  /**
   * Maximum tokens of a training sequence, if shorter than `maxPositions`: conversations end there during the rollout.
   */
  readonly maxTrainTokens?: number
  /**
   * Returns log-probabilities of the sampled tokens of all sequences. Sequences, here and below, must not change until
   * the call is settled.
   */
  logProbs(sequences: readonly Sequence[], options?: LogProbsOptions): Promise<TokenStatistics>
  /**
   * Computes the loss and adds its gradient to that of earlier calls. A call that is aborted, or fails after its start,
   * drops all gradients.
   */
  forwardBackward(
    sequences: readonly Sequence[],
    loss: NativeLoss | LinearLoss,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<LossReport>
  /** Takes an optimizer step with the accumulated gradients and clears them. */
  optimizerStep(step: AdamWParameters): Promise<OptimizerStepStatistics>
  /** Drops accumulated gradients. */
  clearGradients(): Promise<void>
  /**
   * Restores a constraint from its `toJSON` value, whose `vocabulary` may be shared. Present if sequences may have
   * constraints.
   */
  readConstraint?(written: unknown): unknown
  /**
   * Returns the unsupported parts of a plan, as sentences that name an alternative; empty if all are supported. Called
   * before a run changes anything.
   */
  check(plan: EngineRequirements): Promise<readonly string[]>
  /**
   * Reference policy: `freeze` keeps a frozen copy of the policy, for `logProbs` of "reference". Absent if unsupported.
   */
  readonly reference?: { freeze(): Promise<void> }
  /**
   * Returns digests of weights that a training run starting now depends on but its checkpoints do not contain: the base
   * model of an adapter and, with `reference`, what `freeze` would keep. A resumed run checks them. Undefined if there
   * are none.
   */
  frozenWeights?(options: {
    readonly reference: boolean
    readonly signal?: AbortSignal | undefined
  }): Promise<FrozenWeights | undefined>
  /** Store of the model. Absent if the engine cannot save. */
  readonly store?: ModelStore
  /** Snapshots of the weights for sampling. Absent if the engine cannot sample from older weights during an update. */
  readonly snapshots?: Snapshots
  /** Returns the critic, initialized with the policy's weights at the first call. Absent if unsupported. */
  critic?(): Promise<Critic>
}

/**
 * PPO's clipped value loss: mean over all sampled tokens of ½ max((v - R)², (c - R)²), where R is `returns` of the
 * segment, v the current prediction, and c is v clipped to `values` ± `clip`.
 */
export interface ValueLoss {
  readonly kind: "clipped-value"
  /** Clip range of the value. Infinity turns clipping off; `values` are then not needed. */
  readonly clip: number
}

/** Model that predicts returns: one number before each sampled token. */
export interface Critic {
  /** Returns the predicted values before each sampled token, [sampled tokens of all sequences]. */
  predict(
    sequences: readonly Sequence[],
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<Float32Array>
  /**
   * Computes the loss and adds its gradient to that of earlier calls. A call that is aborted, or fails after its start,
   * drops all gradients. Metrics are means over the tokens: "critic/value", and "critic/clip-fraction" (tokens whose
   * clipped term is the larger).
   */
  forwardBackward(
    sequences: readonly Sequence[],
    loss: ValueLoss,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<LossReport>
  /** Takes an optimizer step with the accumulated gradients and clears them. */
  optimizerStep(step: AdamWParameters): Promise<OptimizerStepStatistics>
  /** Drops accumulated gradients. */
  clearGradients(): Promise<void>
  /** Store of the critic. Absent if it cannot be saved. */
  readonly store?: ModelStore
}

/** Digests of frozen weights: SHA-256 of the values, independent of their division into files or devices. */
export interface FrozenWeights {
  /** Folder of the weights. */
  readonly directory?: string
  /** `owner/name@commit` on the Hugging Face Hub, if the folder is in its cache. */
  readonly name?: string
  /** Digest of an adapter's base model. */
  readonly base?: string
  /** Digest of the reference policy. */
  readonly reference?: string
  /** Digest of the teacher. */
  readonly teacher?: string
}

/** Store of a model and of its training state. */
export interface ModelStore {
  /** Approximate sizes on disk in bytes: of a `model` and of a `checkpoint`. */
  readonly bytes?: { readonly model: number; readonly checkpoint: number }
  /**
   * Writes the model in the layout of Hugging Face; `files` (such as a tokenizer's) are copied next to the weights.
   */
  save(
    directory: string,
    options?: { readonly files?: readonly string[]; readonly signal?: AbortSignal | undefined },
  ): Promise<void>
  /**
   * Writes weights and optimizer state into an empty folder, or stores them elsewhere; `files` are copied next to them. The returned handle is stored in
   * the manifest of the checkpoint and passed to `restore`.
   *
   * @throws GigpoError `NON_FINITE` if a weight or moment is not finite.
   */
  checkpoint(directory: string, options?: { readonly files?: readonly string[] }): Promise<Json>
  /** Loads a checkpoint: `handle` is what `checkpoint` returned, `directory` its folder. Rejects if files are missing or damaged. */
  restore(handle: Json, directory: string): Promise<void>
}
