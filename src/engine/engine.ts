import type { Json } from "../util/state.ts"
import type { Sequence } from "./rows.ts"

// What training asks of an engine. The loop, evaluation, cloning and checkpoints know these interfaces and no engine by name.

/** One completion to sample. Token ids in, token ids out: text is never tokenised twice. */
export interface SampleRequest {
  readonly prompt: Int32Array
  /** What came with the prompt (images). */
  readonly attachments?: readonly unknown[]
  /** Most tokens to sample, a stop token included. */
  readonly maxTokens: number
  /** Default 1. 0 takes the most likely token (log-probabilities are then those at temperature 1). */
  readonly temperature?: number | undefined
  /** Sampling ends after any of these; the stop token is part of the completion. */
  readonly stopTokens: readonly number[]
  /** Two 32-bit words that key this completion's random numbers; see `Random.fork`. */
  readonly key: readonly [number, number]
  /** What the reply must be of (a grammar), in whatever form the engine takes it. */
  readonly constraint?: unknown
  /**
   * Told of tokens as they are sampled, in order and each once, where the engine can tell; the completion has them all. Returning true says
   * that no more are needed: the engine may end the completion there, having sampled some more or not. What it throws fails the call.
   */
  readonly onTokens?: ((tokens: Int32Array) => unknown) | undefined
  /** So many of the most likely tokens, at most 20, are told of at each place, where the engine can tell. Default 0. */
  readonly topTokens?: number | undefined
  /**
   * Number of the client that asks. Clients with different numbers get equal parts of the engine's time, where the engine can do that.
   * Default 0: one program that has the engine to itself.
   */
  readonly client?: number | undefined
  /**
   * Number of the client's group. Groups get equal parts of the engine's time, and the clients of a group share the group's part. Clients of
   * different groups have different numbers. Default: the client's own number.
   */
  readonly group?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** One sampled completion. */
export interface Completion {
  readonly tokens: Int32Array
  /** Log-probability of each sampled token under the distribution it was drawn from. */
  readonly logProbs: Float32Array
  /**
   * [tokens] The entropy, in nats, of the distribution that each token was drawn from, where the engine can tell: tempered, and of what a
   * constraint leaves. At temperature 0 it is that at temperature 1, as the log-probability is.
   */
  readonly entropies?: Float32Array
  readonly finishReason: "stop" | "length"
  /**
   * [tokens] The most likely tokens at each place, the most likely first, where they were asked for, by the distribution that was sampled
   * from: tempered, and of what a constraint leaves, which may be fewer.
   */
  readonly top?: readonly (readonly { readonly token: number; readonly logProb: number }[])[]
  /** Which weights it was sampled with, where an engine's sampler may lag behind its trainer. */
  readonly version?: number | string
}

/** What can say a reply to a prompt. */
export interface Sampler {
  readonly vocabularySize: number
  /** Longest sequence, prompt and reply together. */
  readonly maxPositions: number
  /** Whether `SampleRequest.key` decides every draw, so that a run can be repeated and resumed to the bit. */
  readonly deterministic: boolean
  sample(request: SampleRequest): Promise<Completion>
}

/**
 * What can be known of the distribution at every sampled token, besides the token's log-probability: its entropy in nats, its Hellinger
 * distance from the frozen reference's, √(1 - Σ √(p p_ref)), and the log-probabilities of other tokens than the sampled one.
 */
export type Statistic = "entropy" | "hellinger" | "top"

/** Statistics of sampled tokens, as flat columns [sampled tokens of all rows]: rows and their spans in order. */
export interface TokenStatistics {
  readonly logProbs: Float32Array
  /** Where "entropy" was asked for. */
  readonly entropies?: Float32Array
  /** Where "hellinger" was asked for. */
  readonly hellingers?: Float32Array
  /** Where "top" was asked for. */
  readonly top?: TopTokens
}

/** Some tokens at each place, as many everywhere, with their log-probabilities: [sampled tokens × count], those of a place together. */
export interface TopTokens {
  readonly count: number
  readonly tokens: Int32Array
  readonly logProbs: Float32Array
}

/** Options of an engine's `logProbs`. */
export interface LogProbsOptions {
  /** Whose: "current" (the default), "reference" (the frozen one), or another model that the engine knows by name. */
  readonly of?: string | undefined
  readonly needs?: readonly Statistic[] | undefined
  /** Tokens of the statistic "top": the number of most likely ones at each place, or these, [sampled tokens of all rows × count]. */
  readonly top?: number | Pick<TopTokens, "count" | "tokens"> | undefined
  /** Default 1. */
  readonly temperature?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** How token losses become one number; the sums run over the whole batch, not over a micro-batch. A sequence is a span, or a row. */
export type Aggregation =
  | "token-mean" // every token weighs the same
  | "token-sum" // likewise, without a division
  | "sequence-mean-token-sum" // every sequence weighs the same, long ones by their length
  | "sequence-mean-token-mean" // every sequence weighs the same
  | "sequence-mean-fixed-length" // sum over tokens / (sequences × fixedLength): Dr. GRPO, arXiv 2503.20783

/** How KL(policy ‖ reference) is told from one token; with a plus, by the value of that one and the gradient of k2. See src/loss. */
export type KlEstimator = "k1" | "k2" | "k3" | "abs" | "k1+" | "k3+"

/** What counts as a sequence. */
export type Unit = "span" | "row"

/**
 * A loss that an engine may know by name and run in its own kernel. Every number stands in it: defaults belong to the options of
 * the losses (src/loss), of which these are the native form.
 */
export type NativeLoss = CrossEntropy | ClippedSurrogate

/** Minus the mean log-probability of the sampled tokens: behaviour cloning. */
export interface CrossEntropy {
  readonly kind: "cross-entropy"
  /** Default 1. */
  readonly temperature?: number | undefined
}

/** PPO's clipped surrogate with dual clip, a KL term to the reference policy and an entropy bonus; see src/loss. */
export interface ClippedSurrogate {
  readonly kind: "clipped-surrogate"
  readonly clipLow: number
  readonly clipHigh: number
  /** Infinity turns it off. */
  readonly clipDual: number
  /** The importance ratio of each token, or GSPO's one ratio for the whole sequence. */
  readonly ratio: "token" | "sequence"
  readonly klWeight: number
  readonly klEstimator: KlEstimator
  readonly entropyWeight: number
  readonly aggregation: Aggregation
  /** Tokens, at least 1: of "sequence-mean-fixed-length", and of no other. */
  readonly fixedLength?: number | undefined
  /** Default "span". */
  readonly unit?: Unit | undefined
  /**
   * Spans with advantage 0 have no gradient where there is neither a KL nor an entropy term. With this they count in the loss's
   * normalisation but are not computed, and the report is over the others.
   */
  readonly skipZeroAdvantage: boolean
  /** Default 1. */
  readonly temperature?: number | undefined
}

/**
 * Any other loss, as it reaches the network: what it says of every sampled token. No callback crosses to an engine; the trainer
 * takes the log-probabilities, evaluates the loss and hands these over.
 */
export interface LinearLoss {
  readonly kind: "linear"
  /** d loss / d log p, [sampled tokens of all rows]: rows and their spans in order. */
  readonly coefficients: Float32Array
  /** d loss / d entropy, likewise. Default: none. */
  readonly entropyCoefficients?: Float32Array | undefined
  /** d loss / d log p of other tokens at the same places; `logProbs` holds the coefficients. Default: none. */
  readonly top?: TopTokens | undefined
  /** Default 1. */
  readonly temperature?: number | undefined
}

/** Loss and statistics of one `forwardBackward`. */
export interface LossReport {
  /** 0 for a `LinearLoss`, whose value the engine does not know; NaN where it tells none: the trainer takes it from `logProbs` then. */
  readonly loss: number
  /** Sampled tokens that were computed. */
  readonly tokens: number
  /** Tokens of the rows, sampled or not, that went through the model. Absent where the engine does not tell. */
  readonly computedTokens?: number | undefined
  /** Those that did not, because another row begins with them, too. */
  readonly reusedTokens?: number | undefined
  /**
   * Means over these tokens, by the name that an iteration reports them under: "policy/entropy"; of the clipped surrogate
   * also "policy/clip-fraction" (tokens whose clipped term is the larger one, before the dual clip), "policy/dual-clip-fraction"
   * (tokens that the dual clip holds), "loss/kl" (to the reference, by the chosen estimator, where one was given), "policy/kl"
   * (old log p - log p) and "policy/ratio". Where no token was computed there are none.
   */
  readonly metrics: Readonly<Record<string, number>>
  /**
   * What the pass computed: log p of each token under the weights as they were, [sampled tokens of all rows]; NaN of tokens that
   * were not computed. Absent where the engine does not tell.
   */
  readonly logProbs?: Float32Array | undefined
}

/** Hyperparameters of one AdamW step. */
export interface AdamWStep {
  readonly learningRate: number
  /** Default 0.9. */
  readonly beta1?: number | undefined
  /** Default 0.999. */
  readonly beta2?: number | undefined
  /** Default 1e-8. */
  readonly epsilon?: number | undefined
  /** Decoupled decay, applied to matrices only (not to biases and norms). Default 0. */
  readonly weightDecay?: number | undefined
  /** Gradients are scaled down to this norm. Default 1; Infinity turns it off. */
  readonly maxGradientNorm?: number | undefined
}

/** Statistics of one optimizer step. */
export interface StepReport {
  /** Norm of the gradients before they were scaled down; NaN where the engine does not tell. */
  readonly gradientNorm: number
  /** True when the norm was not finite: the weights were left as they were and the gradients dropped. */
  readonly skipped: boolean
}

/** What a run is going to ask of its engine. */
export interface RunPlan {
  /** The built-in loss, or "linear" where the trainer evaluates one. */
  readonly loss: NativeLoss | "linear"
  readonly entropyCoefficients: boolean
  /** Statistics of the policy's own distribution. */
  readonly statistics: readonly Statistic[]
  /** Other models whose log-probabilities are needed: "reference", teachers. */
  readonly models: readonly string[]
  /** Whether a critic is trained. Default false. */
  readonly critic?: boolean | undefined
  readonly optimizer: AdamWStep
  /** Whether rows of many spans may come. */
  readonly manySpans: boolean
  /** Whether the run saves checkpoints. */
  readonly checkpoints: boolean
  /** What training's replies are sampled at when it begins. Default 1. */
  readonly temperature?: number | undefined
}

/** Who tells how likely it would have said what was sampled: another policy, frozen, or anything that knows. */
export type Teacher = Pick<Trainable, "vocabularySize" | "logProbs" | "frozen">

/** What can learn, too. Everything heavy runs off the event loop; calls run in the order in which they are made. */
export interface Trainable extends Sampler {
  /** Weights of the model, where the engine tells: the learning rate follows from it where none is set. */
  readonly parameters?: number
  /** The built-in losses that it runs itself; any other is evaluated by the trainer and comes as a `LinearLoss`. */
  readonly losses: readonly NativeLoss["kind"][]
  /** Whether it runs this one of them itself, with all that is set in it. Default: any. */
  runs?(loss: NativeLoss): boolean
  /** Longest row that it can learn from, where that is shorter than `maxPositions`: conversations end there while they are played. */
  readonly longestRow?: number
  /** Log-probabilities of the sampled tokens of all rows. Rows, here and below, are read until the call is settled. */
  logProbs(rows: readonly Sequence[], options?: LogProbsOptions): Promise<TokenStatistics>
  /** Adds the gradient of the loss to what earlier calls left. A call that is aborted, or fails once it has begun, drops all gradients. */
  forwardBackward(
    rows: readonly Sequence[],
    loss: NativeLoss | LinearLoss,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<LossReport>
  /** Applies the gradients and clears them. */
  optimizerStep(step: AdamWStep): Promise<StepReport>
  /** Forgets gradients that no optimizer step has used. */
  clearGradients(): Promise<void>
  /** Where rows may have constraints: makes one again of what its `toJSON` gave, whose `vocabulary` may be shared by many. */
  readConstraint?(written: unknown): unknown
  /**
   * What of the plan it cannot do, as sentences that name what could be set instead; none where it can do all. Asked before a run
   * touches anything.
   */
  check(plan: RunPlan): Promise<readonly string[]>
  /** Where it can keep a frozen copy of the policy: what `logProbs` of "reference" asks. */
  readonly reference?: { freeze(): Promise<void> }
  /**
   * Tells the weights that a training which begins now depends on and its checkpoints do not hold, for a run that goes on to know
   * them again: an adapter's model, and with `reference` what `freeze` would keep. undefined where there are none.
   */
  frozen?(options: {
    readonly reference: boolean
    readonly signal?: AbortSignal | undefined
  }): Promise<FrozenWeights | undefined>
  /** Where it can be saved. */
  readonly store?: ModelStore
  /** Where it can train a critic: the one that it has, made of the policy's weights when it is first asked for. */
  critic?(): Promise<Critic>
}

/**
 * PPO's clipped value loss, the mean over all sampled tokens of ½ max((v - R)², (c - R)²): R is the span's `returns`, v what is
 * foretold now, and c is v held to the span's `values` ± `clip`.
 */
export interface ValueLoss {
  readonly kind: "clipped-value"
  /** Infinity turns it off, and then no `values` are asked for. */
  readonly clip: number
}

/** A model that predicts returns: one number before each sampled token. */
export interface Critic {
  /** Values before each sampled token, [sampled tokens of all rows]. */
  predict(rows: readonly Sequence[], options?: { readonly signal?: AbortSignal | undefined }): Promise<Float32Array>
  /**
   * Adds the gradient of the loss to what earlier calls left. A call that is aborted, or fails once it has begun, drops
   * all gradients. Reported as
   * means over the tokens: "critic/value", and "critic/clip-fraction" (tokens whose bounded term is the larger).
   */
  forwardBackward(
    rows: readonly Sequence[],
    loss: ValueLoss,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<LossReport>
  /** Applies the gradients and clears them. */
  optimizerStep(step: AdamWStep): Promise<StepReport>
  /** Forgets gradients that no optimizer step has used. */
  clearGradients(): Promise<void>
  /** Where it can be saved. */
  readonly store?: ModelStore
}

/** Weights that stay as they are, each by a SHA-256 that depends on their values alone, not on how files or devices divide them. */
export interface FrozenWeights {
  /** The folder that they are from. */
  readonly directory?: string
  /** `owner/name@commit` on the Hugging Face Hub, where the folder is one of its cache. */
  readonly name?: string
  /** Of the model that an adapter is trained beside. */
  readonly base?: string
  /** Of what a KL compares the policy with. */
  readonly reference?: string
  /** Of the teacher that it is distilled from. */
  readonly teacher?: string
}

/** Saving a model, and all that its training goes on from. */
export interface ModelStore {
  /** About what they take on the disk. */
  readonly bytes?: { readonly model: number; readonly checkpoint: number }
  /** Writes the model in Hugging Face layout; `files` (a tokenizer's, say) are copied beside the weights. */
  save(
    directory: string,
    options?: { readonly files?: readonly string[]; readonly signal?: AbortSignal | undefined },
  ): Promise<void>
  /**
   * Writes weights and the optimizer's state into an empty folder, or keeps them elsewhere. What it returns stands in the
   * checkpoint's manifest, and `restore` gets it back.
   *
   * @throws GigpoError `NON_FINITE` where a weight or moment is not finite.
   */
  checkpoint(directory: string, options?: { readonly files?: readonly string[] }): Promise<Json>
  restore(handle: Json, directory: string): Promise<void>
}
