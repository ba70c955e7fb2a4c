import { GigpoError } from "../util/errors.ts"
import { loadAddon } from "./load.ts"
import type { ModelImage, NativeModel } from "./model.ts"

// Interface to the native addon: types of every native class and function; load.ts finds the file. Callers in
// engine/native/ and kernels/ check arguments with detailed messages; native code only rejects what it would misread.

/**
 * Native call in progress. `cancel` makes the promise reject with code ABORTED at the next check of the native code.
 */
export interface Started<T> {
  readonly promise: Promise<T>
  cancel(): void
}

/** Low-rank pairs of projections, and fully trained copies of parameters; see core/adapter.h. */
export interface NativeAdapter {
  /** [layers × (q, k, v, o, gate, up, down)]; 0 for no pair. */
  readonly ranks: Int32Array
  readonly scales: Float64Array
  /** Names of the model's parameters. */
  readonly whole: readonly string[]
  /** Whether the output head uses the embedding's copy. */
  readonly tied: boolean
}

export interface NativeEngineOptions {
  readonly device: "cpu" | "cuda"
  /** Number of the GPU, as CUDA counts; absent: the first usable one. */
  readonly gpu?: number
  /** If the engine is one of several replicas: what they have in common, and its number among them, from 0. */
  readonly replicas?: NativeReplicas
  readonly rank?: number
  /** Number format of activations and of the weights used in computation; the CPU supports float32 only. */
  readonly precision: "float32" | "bfloat16"
  /** Threads of the CPU device; 0: all cores. */
  readonly threads: number
  readonly microBatchTokens: number
  /** Maximum tokens of a sequence; 0: as many as fit. */
  readonly maxTrainTokens: number
  /** Bytes of the KV cache; 0: chosen by device. */
  readonly kvCacheBytes: number
  /** "auto": the least recomputation that fits. */
  readonly recompute: "auto" | "none" | "norms" | "mlp" | "block"
  readonly optimizerPrecision: "float32" | "bfloat16"
  readonly sharePrefixes: boolean
  /** Absent if all weights are trained. */
  readonly adapter?: NativeAdapter
  /** Whether cuBLASLt may be used for sampling. Its results for a sequence can depend on the batch. */
  readonly sampleWithCublas: boolean
  /** Whether to reserve memory for training, for a frozen reference, and for a critic. */
  readonly trained: boolean
  readonly reference: boolean
  readonly critic: boolean
  /** Whether a vision tower is trained, too. */
  readonly trainVision: boolean
}

/** Replicas of one policy; see core/replicas.h. */
export type NativeReplicas = object

/** Memory plan in bytes; see core/memory_plan.h. */
export interface NativeMemoryPlan {
  readonly weights: number
  /** Second copy of the weights, packed for products with few rows on the CPU. */
  readonly packed: number
  readonly gradients: number
  readonly moments: number
  readonly reference: number
  /** Weights, gradients and moments of the critic. */
  readonly critic: number
  readonly activations: number
  /** Activations of the longest sequence that can be trained, with its scratch beyond a micro-batch. */
  readonly longestActivations: number
  readonly cache: number
  /** Maximum working memory of a sampling step. */
  readonly sampling: number
  /** A pass of the vision tower over a large image, and the features of images; 0 without a vision tower. */
  readonly vision: number
  /** Further working memory of attention, and the output of the head. */
  readonly scratch: number
  /** Whether cache and activations use the same memory alternately. */
  readonly shared: boolean
  readonly recompute: "none" | "norms" | "mlp" | "block"
  /** Tokens of the longest sequence that can be trained; 0 without training. */
  readonly maxTrainTokens: number
  /** Why cuBLASLt is not used on a GPU; absent if it is used, and before a policy is open. */
  readonly withoutLibrary?: string
  /** Version and path of cuBLASLt ("cuBLASLt 13.1.0, /usr/local/cuda/…"), if it computes the products of training on a GPU. */
  readonly library?: string
  readonly total: number
  /** Memory that was available. */
  readonly available: number
  readonly text: string
}

/**
 * Sequences one after another, with columns of their sampled tokens: [sampled tokens], segment after segment. The
 * engine reads these arrays in place until the call is settled; they must not be changed before. One of several replicas
 * computes its share of the sequences.
 */
export interface NativeBatch {
  readonly tokens: Int32Array
  /** [rows + 1]: offset of each sequence's tokens. */
  readonly rowOffsets: Int32Array
  /** [spans]: sequence of each segment, its first position there, and its number of tokens. */
  readonly spanRows: Int32Array
  readonly spanBegins: Int32Array
  readonly spanCounts: Int32Array
  readonly advantages?: Float32Array
  readonly oldLogProbs?: Float32Array
  readonly referenceLogProbs?: Float32Array
  /** d loss / d log p and d loss / d entropy, for mode "linear". */
  readonly coefficients?: Float32Array
  readonly entropyCoefficients?: Float32Array
  /**
   * Other tokens at the same positions, [sampled tokens × topCount]. Without `topTokens`, "logProbs" finds the most
   * likely ones.
   */
  readonly topCount?: number
  readonly topTokens?: Int32Array
  /** d loss / d log p of these, for mode "linear". */
  readonly topCoefficients?: Float32Array
  /** For a critic: returns, and predictions before the updates of the batch. */
  readonly returns?: Float32Array
  readonly oldValues?: Float32Array
  /** [spans]: constraint of each segment when it was sampled; absent if there was none. */
  readonly constraints?: readonly (NativeGrammar | undefined)[]
  /** Images of the batch, each once; absent if no sequence has images. */
  readonly images?: readonly NativeImage[]
  /** Images of sequence r: `images[imageIndices[i]]` for i from `imageOffsets[r]` to `imageOffsets[r + 1]`. */
  readonly imageOffsets?: Int32Array
  readonly imageIndices?: Int32Array
}

/** `ModelImage` with its grid as an array. */
export interface NativeImage extends Pick<ModelImage, "patches" | "hash"> {
  /** [3] */
  readonly grid: Int32Array
}

/** [sampled tokens], and [sampled tokens × topCount]; empty if not requested. NaN for tokens of other replicas. */
export interface NativeScores {
  readonly logProbs: Float32Array
  readonly entropies: Float32Array
  readonly hellingers: Float32Array
  /** Tokens that were found; empty if they were given. */
  readonly topTokens: Int32Array
  readonly topLogProbs: Float32Array
}

export type NativeTrainingLoss =
  | { readonly mode: "sft" | "linear"; readonly temperature: number }
  | {
      readonly mode: "policy"
      readonly temperature: number
      readonly clipLow: number
      readonly clipHigh: number
      readonly clipDual: number
      readonly importanceSamplingLevel: "token" | "sequence"
      readonly klWeight: number
      readonly klEstimator: string
      readonly entropyWeight: number
      readonly aggregation: string
      /** For aggregation "sequence-mean-fixed-length". */
      readonly fixedLength?: number | undefined
      readonly unit: "completion" | "conversation"
      readonly skipZeroAdvantage: boolean
    }

export interface NativeLossReport {
  readonly loss: number
  readonly tokens: number
  readonly computedTokens: number
  readonly reusedTokens: number
  readonly entropy: number
  readonly clipFraction: number
  readonly dualClipFraction: number
  readonly kl: number
  readonly policyKl: number
  readonly ratio: number
  /** [sampled tokens]; NaN for tokens that were not computed. */
  readonly logProbs: Float32Array
}

export interface NativeParameter {
  readonly name: string
  readonly shape: readonly number[]
}

/** Model with trained weights: the policy or its critic. */
export interface NativeLearner {
  /** All weights, in the order of the flat buffer. */
  readonly parameters: readonly NativeParameter[]
  /** Number of `parameters`, from the first on, that are trained where there is no adapter: all but those of a frozen vision tower. */
  readonly trainedParameters: number
  /**
   * Parameters of the adapter, by PEFT's names; empty without one. With an adapter, gradients and moments cover only
   * these.
   */
  readonly adapterParameters: readonly NativeParameter[]
  /**
   * Parameters of the buffer "merged": those of the model, and an output head that the adapter has untied from the
   * embedding.
   */
  readonly mergedParameters: readonly NativeParameter[]
  /**
   * Copies `bytes` (little-endian, of `type`, a GGUF type such as F32 or Q4_K) to parameter `index`, from element `offset` on. The bytes are read in
   * place until the call is settled; they must not be changed before.
   */
  write(buffer: NativeBuffer, index: number, offset: number, bytes: Uint8Array, type: string): Started<void>
  read(buffer: NativeBuffer, index: number, offset: number, count: number): Started<Float32Array>
  optimizerStep(step: {
    learningRate: number
    beta1: number
    beta2: number
    epsilon: number
    weightDecay: number
    maxGradientNorm: number
  }): Started<{ gradientNorm: number; skipped: boolean }>
  clearGradients(): Started<void>
  /** Optimizer steps so far. */
  steps: number
}

export interface NativeValueLearner extends NativeLearner {
  /** [sampled tokens] */
  predict(batch: NativeBatch): Started<Float32Array>
  /** Loss and gradient of a batch with `returns` and, if `clip` is finite, `oldValues`. */
  forwardBackward(batch: NativeBatch, loss: { clip: number }): Started<NativeValueReport>
}

/** Means over sampled tokens. */
export interface NativeValueReport {
  readonly loss: number
  readonly tokens: number
  readonly clipFraction: number
  readonly value: number
}

export interface NativeSampleRequest {
  readonly prompt: Int32Array
  /** Images of the prompt's image tokens, in order; absent for none. */
  readonly images?: readonly NativeImage[]
  readonly maxTokens: number
  readonly temperature: number
  readonly stopTokens: Int32Array
  readonly key: readonly [number, number]
  readonly constraint?: NativeGrammar | undefined
  /** Number of most likely tokens to return per position; at most 20. */
  readonly topTokens: number
  readonly client: number
  /** Group of requests within the client. */
  readonly group: number
  /**
   * Receives all tokens sampled since the last call. Returning `true` ends the completion within a step; an exception
   * fails it.
   */
  readonly onTokens?: ((tokens: Int32Array) => unknown) | undefined
}

export interface NativeCompletion {
  readonly tokens: Int32Array
  readonly logProbs: Float32Array
  readonly entropies: Float32Array
  /**
   * Whether the completion ended by a stop token, by the end of its constraint, or because `onTokens` returned true.
   */
  readonly stopped: boolean
  /** [tokens × topTokens], most likely first; -1 if fewer tokens are allowed. */
  readonly topTokens: Int32Array
  readonly topLogProbs: Float32Array
}

export interface NativeEngine extends NativeLearner {
  /** Initializes the weights from a random key: N(0, deviation²), norms 1, biases 0. */
  initialize(key: readonly [number, number], deviation: number): Started<void>
  /** Keeps a frozen copy of the weights as the reference policy. */
  freezeReference(): Started<void>
  sample(request: NativeSampleRequest): Started<NativeCompletion>
  /** [tokens × vocabulary] */
  logits(tokens: Int32Array, images?: readonly NativeImage[]): Started<Float32Array>
  logProbs(
    batch: NativeBatch,
    of: "current" | "reference",
    temperature: number,
    /** Whether to compute Hellinger distances from the reference's distributions. */
    hellinger: boolean,
  ): Started<NativeScores>
  forwardBackward(batch: NativeBatch, loss: NativeTrainingLoss): Started<NativeLossReport>
  /** Critic of the policy, initialized with the current weights at the first call. */
  critic(): Started<NativeValueLearner>
  /**
   * Whether a completion depends only on its request, not on what else is sampled at the time; known once the engine is
   * open.
   */
  readonly deterministic: boolean
  /** Memory plan; undefined until the engine is open. If opening fails, every call fails with that error. */
  readonly plan: NativeMemoryPlan | undefined
  /** Totals of sampling. */
  readonly statistics: {
    readonly computedTokens: number
    readonly reusedTokens: number
    readonly sampledTokens: number
    readonly preemptions: number
  }
  /** Disposes of the engine. Queued calls fail with DISPOSED; running ones are finished first. */
  dispose(): Promise<void>
}

/** Bytes of each token of a vocabulary. */
export type NativeVocabulary = object

/** Grammar over a vocabulary, for constrained decoding. */
export interface NativeGrammar {
  /** Tokens allowed after these: bit t % 32 of word t / 32. Undefined if they end the text. */
  allowed(tokens: Int32Array): Uint32Array | undefined
}

/** Buffers of weights. "merged" is read-only: the weights with the adapter applied. */
export type NativeBuffer = "weights" | "merged" | "adapter" | "gradients" | "firstMoment" | "secondMoment"

export interface NativeDeviceReport {
  readonly unavailable?: {
    readonly code: "not_built" | "no_driver" | "old_driver" | "no_device"
    readonly message: string
  }
  readonly devices: readonly {
    /** Number of the GPU, as CUDA counts. */
    readonly index: number
    readonly name: string
    readonly computeCapability: string
    readonly memoryBytes: number
  }[]
  /** Version of the driver; absent without one. */
  readonly driver?: string
  readonly cpu: {
    readonly instructionSet: string
    /** Processors available to this process, by affinity and container quota. */
    readonly threads: number
    /** Memory still available, within the container's limits. */
    readonly memoryBytes: number
  }
}

/**
 * Whether NVIDIA's matrix library (cuBLASLt) is found and passes a test; `message` gives the reason if not. See
 * core/device_report.h.
 */
export interface NativeMatmulLibraryReport {
  readonly found: boolean
  readonly path?: string
  readonly version?: string
  readonly message: string
  /** Why gigpo's own Hopper kernels are not used in its place; absent if they are. */
  readonly withoutWgmma?: string
  /** Why these kernels are not used in sampling, such as bits that differ from the other kernels'; absent if they are. */
  readonly withoutWgmmaSampling?: string
  /** Why attention in training does not use them; absent if it does. */
  readonly withoutWgmmaAttention?: string
}

/** Policy loss, its gradient with respect to the log-probabilities, and statistics. */
export interface NativeSurrogateReport {
  /** policyLoss + klWeight × kl */
  readonly loss: number
  /** Policy loss without KL and entropy terms. */
  readonly policyLoss: number
  /** Mean KL divergence from the reference policy in nats. */
  readonly kl: number
  /** Share of tokens whose clipped term is the larger one, before the dual clip. */
  readonly clipFraction: number
  /** Share of tokens bounded by the dual clip. */
  readonly dualClipFraction: number
  /** Mean of old log p - new log p. */
  readonly policyKl: number
  /** Mean importance ratio. */
  readonly ratio: number
  /** d loss / d logProbs, [tokens]. */
  readonly gradient: Float32Array
}

/** Value loss and its gradient with respect to the values. */
export interface NativeValueLoss {
  /** Value of the loss. */
  readonly loss: number
  /** Share of tokens whose clipped term is strictly larger. */
  readonly clipFraction: number
  /** d loss / d values, [tokens]. */
  readonly gradient: Float64Array
}

export interface Native {
  readonly Engine: new (model: NativeModel, options: NativeEngineOptions) => NativeEngine
  /** Token i is bytes[offsets[i] … offsets[i + 1]), empty for tokens without text; tokens in `ends` end a text. */
  readonly Vocabulary: new (
    bytes: Uint8Array,
    offsets: Int32Array,
    ends: Int32Array,
  ) => NativeVocabulary
  /** Instructions of three numbers, and byte sets of 32 bytes each; see core/grammar/grammar.h. */
  readonly Grammar: new (
    vocabulary: NativeVocabulary,
    instructions: Int32Array,
    sets: Uint8Array,
  ) => NativeGrammar
  /** `new Grammar`, computed on another thread. */
  prepareGrammar(vocabulary: NativeVocabulary, instructions: Int32Array, sets: Uint8Array): Promise<NativeGrammar>
  /** Sets the class of errors that native code throws. */
  setErrorClass(errorClass: typeof GigpoError): void
  deviceReport(): NativeDeviceReport
  /**
   * Hides memory and environment of this process from other processes of its user (Linux; disables core dumps and later
   * debuggers). False if not possible: on other systems, and for root.
   */
  hideProcess(): boolean
  /** Tests the matrix library on the first device, which takes a moment. */
  matmulLibraryReport(): NativeMatmulLibraryReport
  /**
   * What `count` engines have in common that are replicas of one policy. They wait for each other: while they open, and in each
   * `optimizerStep`, which all must start.
   */
  replicas(count: number): NativeReplicas
  /** Memory plan of an engine with these options and `availableBytes`; throws OUT_OF_MEMORY as the engine would. */
  memoryPlan(model: NativeModel, options: NativeEngineOptions, availableBytes: number): NativeMemoryPlan
  tokenLogProbs(
    logits: Float32Array,
    vocabulary: number,
    tokens: Int32Array,
    temperature: number,
    device: "cpu" | "cuda",
  ): { logProbs: Float32Array; entropies: Float32Array }
  clippedSurrogate(
    input: {
      logProbs: Float32Array
      oldLogProbs: Float32Array
      advantages: Float32Array
      mask: Float32Array
      lengths: Int32Array
      referenceLogProbs?: Float32Array
    },
    options: {
      clipLow: number
      clipHigh: number
      clipDual: number
      klWeight: number
      klEstimator: string
      aggregation: string
      fixedLength?: number | undefined
      importanceSamplingLevel: string
    },
    device: "cpu" | "cuda",
  ): NativeSurrogateReport
  valueLoss(
    input: { values: Float64Array; returns: Float64Array; oldValues?: Float64Array; mask?: Float64Array },
    clip: number,
  ): NativeValueLoss
  /** Numbers in a format of GGUF: F32, F16, BF16, Q8_0, Q4_0, Q5_0, Q4_K or Q6_K. The values are read until the promise is settled. */
  quantize(type: string, values: Float32Array): Promise<Uint8Array>
  /** Numbers of any format that is read, from whole blocks. The bytes are read until the promise is settled. */
  dequantize(type: string, bytes: Uint8Array): Promise<Float32Array>
  /** State i is bytes[offsets[i] … offsets[i + 1]) of tasks[i]. */
  groupAnchors(tasks: Int32Array, bytes: Uint8Array, offsets: Float64Array): { groups: Int32Array; count: number }
  /**
   * Like `groupAnchors`, off the event loop. The bytes are read in place until the promise is settled; they must not be
   * changed before.
   */
  groupAnchorsOnGpu(
    tasks: Int32Array,
    bytes: Uint8Array,
    offsets: Float64Array,
  ): Promise<{ groups: Int32Array; count: number }>
}

let loaded: Native | undefined

/**
 * Native addon, loaded at first use.
 *
 * @throws GigpoError `NATIVE_MISSING` if there is none for this machine
 */
export function native(): Native {
  if (loaded) return loaded
  loaded = loadAddon() as Native
  loaded.setErrorClass(GigpoError)
  return loaded
}
