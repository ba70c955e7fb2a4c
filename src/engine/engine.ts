/** One completion to sample. Token ids in, token ids out: text is never tokenised twice. */
export interface SampleRequest {
  readonly prompt: Int32Array
  /** Most tokens to sample, a stop token included. */
  readonly maxTokens: number
  /** Default 1. 0 takes the most likely token (log-probabilities are then those at temperature 1). */
  readonly temperature?: number
  /** Sampling ends after any of these; the stop token is part of the completion. */
  readonly stopTokens: readonly number[]
  /** Two 32-bit words that key this completion's random numbers; see `Random.fork`. */
  readonly key: readonly [number, number]
  readonly signal?: AbortSignal
}

export interface Completion {
  readonly tokens: Int32Array
  /** Log-probability of each sampled token under the distribution it was drawn from. */
  readonly logProbs: Float32Array
  readonly finishReason: "stop" | "length"
}

/** One training row: one prompt, one reply, and what the loss needs to know of them. */
export interface Row {
  readonly prompt: Int32Array
  readonly reply: Int32Array
  /** One advantage for every token of the reply. Policy losses only. */
  readonly advantage?: number
  /** Log-probabilities of the reply when it was sampled, [reply.length]. Policy losses only. */
  readonly logProbs?: Float32Array
  /** Log-probabilities of the reply under the reference policy, [reply.length]. Needed when the KL weight is not 0. */
  readonly referenceLogProbs?: Float32Array
}

/** How token losses become one number; the sums run over the whole batch, not over a micro-batch. */
export type Aggregation =
  | "token-mean" // every token weighs the same
  | "sequence-mean-token-sum" // every row weighs the same, long rows by their length
  | "sequence-mean-token-mean" // every row weighs the same

/** PPO's clipped surrogate with dual clip and a KL term to the reference policy. */
export interface PolicyLossOptions {
  /** Ratio is kept above 1 - clipLow. Default 0.2. */
  readonly clipLow?: number
  /** Ratio is kept below 1 + clipHigh. Default 0.2. */
  readonly clipHigh?: number
  /** Dual clip: with a negative advantage the loss is at most -clipDual × advantage. Default 3; Infinity turns it off. */
  readonly clipDual?: number
  /** Weight of the KL term. Default 0. */
  readonly klWeight?: number
  /** Estimator of KL(policy ‖ reference) per token, with d = log p_ref - log p: k1 = -d, k2 = d²/2, k3 = e^d - d - 1. Default k3. */
  readonly klEstimator?: "k1" | "k2" | "k3"
  /** Weight of the entropy bonus. Default 0. */
  readonly entropyWeight?: number
  /** Default "token-mean". */
  readonly aggregation?: Aggregation
  /** The importance ratio of each token, or GSPO's one ratio for the whole reply. Default "token". */
  readonly ratio?: "token" | "sequence"
  /**
   * Rows with advantage 0 have no gradient where there is neither a KL nor an entropy term. With this they count in the loss's
   * normalisation but are not computed, and the report is over the others. Default false.
   */
  readonly skipZeroAdvantage?: boolean
}

/**
 * - `policy`: the clipped surrogate.
 * - `clone`: minus the mean log-probability of the reply (behaviour cloning).
 * - `custom`: any function of the log-probabilities. It returns the loss and d loss / d log p of every reply token.
 */
export type LossSpec =
  | ({ readonly kind: "policy"; readonly temperature?: number } & PolicyLossOptions)
  | { readonly kind: "clone" }
  | {
      readonly kind: "custom"
      readonly temperature?: number
      readonly loss: (logProbs: readonly Float32Array[], rows: readonly Row[]) => CustomLoss
    }

export interface CustomLoss {
  readonly loss: number
  /** d loss / d log p, one array a row, each [reply.length]. */
  readonly gradient: readonly Float32Array[]
}

/** Means over all reply tokens of the batch, except `loss`. */
export interface LossReport {
  readonly loss: number
  readonly tokens: number
  readonly entropy: number
  /** Share of tokens whose gradient the clip cut off. */
  readonly clipFraction: number
  /** KL to the reference policy, by the chosen estimator; 0 where no reference was given. */
  readonly kl: number
  /** Mean of old log p - new log p: how far the policy moved since the rows were sampled. */
  readonly policyKl: number
  /** Mean importance ratio. */
  readonly ratio: number
}

export interface AdamWStep {
  readonly learningRate: number
  /** Default 0.9. */
  readonly beta1?: number
  /** Default 0.999. */
  readonly beta2?: number
  /** Default 1e-8. */
  readonly epsilon?: number
  /** Decoupled decay, applied to matrices only (not to biases and norms). Default 0. */
  readonly weightDecay?: number
  /** Gradients are scaled down to this norm. Default 1; Infinity turns it off. */
  readonly maxGradientNorm?: number
}

export interface StepReport {
  /** Norm of the gradients before they were scaled down. */
  readonly gradientNorm: number
  /** True when the norm was not finite: the weights were left as they were and the gradients dropped. */
  readonly skipped: boolean
}

/**
 * The few verbs every engine can offer. Rows and completions are token ids; everything heavy runs off the event loop.
 */
export interface Policy {
  sample(request: SampleRequest): Promise<Completion>
  /** Log-probabilities of the replies, one array a row. */
  logProbs(
    rows: readonly Row[],
    which: "current" | "reference",
    options?: { temperature?: number; signal?: AbortSignal },
  ): Promise<Float32Array[]>
  /** Adds the gradient of the loss to what earlier calls left. */
  forwardBackward(rows: readonly Row[], loss: LossSpec, options?: { signal?: AbortSignal }): Promise<LossReport>
  /** Applies the gradients and clears them. */
  optimizerStep(step: AdamWStep): Promise<StepReport>
  /** Writes the model in Hugging Face layout; `files` (a tokenizer's, say) are copied beside the weights. */
  save(directory: string, options?: { files?: readonly string[] }): Promise<void>
}
