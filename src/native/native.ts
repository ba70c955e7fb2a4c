import { createRequire } from "node:module"
import { GigpoError } from "../util/errors.ts"
import { packageFolder } from "../util/version.ts"

// The one file where TypeScript and the addon meet: every native class and function, typed, and how they are loaded.
// The callers in engine/native/ and kernels/ check their arguments, with sentences; native code refuses what it would misread.

/** A native call under way. `cancel` makes the promise reject with code ABORTED as soon as the native code looks up. */
export interface Started<T> {
  readonly promise: Promise<T>
  cancel(): void
}

export interface NativeModel {
  readonly vocabularySize: number
  readonly hiddenSize: number
  readonly intermediateSize: number
  readonly layers: number
  readonly heads: number
  readonly keyValueHeads: number
  readonly headSize: number
  readonly maxPositions: number
  readonly rmsNormEpsilon: number
  readonly ropeTheta: number
  readonly ropeScaling?: {
    readonly factor: number
    readonly lowFrequencyFactor: number
    readonly highFrequencyFactor: number
    readonly originalMaxPositions: number
  }
  readonly tieEmbeddings: boolean
  readonly queryKeyValueBias: boolean
  readonly queryKeyNorm: boolean
}

/** Pairs beside projections, and copies that are trained whole; see core/adapter.h. */
export interface NativeAdapter {
  /** [layers × (q, k, v, o, gate, up, down)]; 0 where there is no pair. */
  readonly ranks: Int32Array
  readonly scales: Float64Array
  /** Names of the model's parameters. */
  readonly whole: readonly string[]
  /** The head goes with the embedding's copy. */
  readonly tied: boolean
}

export interface NativeEngineOptions {
  readonly device: "cpu" | "cuda"
  /** Of activations and of the weights that are computed with; the CPU has float32 alone. */
  readonly precision: "float32" | "bfloat16"
  /** Threads of the CPU device; 0 takes every core. */
  readonly threads: number
  readonly microBatchTokens: number
  /** 0: as long as there is room for. */
  readonly longestRow: number
  /** 0: as suits the device. */
  readonly kvCacheBytes: number
  /** "auto": the least that fits. */
  readonly recompute: "auto" | "none" | "norms" | "mlp" | "block"
  readonly moments: "float32" | "bfloat16"
  readonly sharePrefixes: boolean
  /** Absent where all weights are trained. */
  readonly adapter?: NativeAdapter
  /** Whether cuBLASLt, which promises no row the same bits in every batch, may sample. */
  readonly sampleWithCublas: boolean
  /** Whether memory for training must be there, for a frozen reference, and for a critic. */
  readonly trained: boolean
  readonly reference: boolean
  readonly critic: boolean
}

/** Bytes; see core/memory_plan.h. */
export interface NativeMemoryPlan {
  readonly weights: number
  /** Weights once more, as the CPU multiplies few rows with them. */
  readonly packed: number
  readonly gradients: number
  readonly moments: number
  readonly reference: number
  /** A critic's weights, gradients and moments. */
  readonly critic: number
  readonly activations: number
  /** Of the longest row that can be trained, and its scratch beyond a micro-batch's: what rows that outgrow one take at most. */
  readonly longestActivations: number
  readonly cache: number
  /** What a step of sampling computes in, at most. */
  readonly sampling: number
  /** What attention computes in beside that, and the results of the head. */
  readonly scratch: number
  /** Cache and activations take turns in one place. */
  readonly shared: boolean
  readonly recompute: "none" | "norms" | "mlp" | "block"
  /** Tokens of the longest row that can be trained; 0 where nothing is. */
  readonly longestRow: number
  /** Why a GPU's products do without cuBLASLt; absent where they do not, and before a policy is open. */
  readonly withoutLibrary?: string
  readonly total: number
  /** What there was for it. */
  readonly available: number
  readonly text: string
}

/**
 * Rows one after the other, and what is known of their sampled tokens: columns of [sampled tokens], span after span. The engine reads
 * these arrays where they lie until the call is settled: nobody may change them.
 */
export interface NativeBatch {
  readonly tokens: Int32Array
  /** [rows + 1]: where each row's tokens begin. */
  readonly rowOffsets: Int32Array
  /** [spans]: whose each is, where in its row it begins, and how many tokens it has. */
  readonly spanRows: Int32Array
  readonly spanBegins: Int32Array
  readonly spanCounts: Int32Array
  readonly advantages?: Float32Array
  readonly oldLogProbs?: Float32Array
  readonly referenceLogProbs?: Float32Array
  /** d loss / d log p and d loss / d entropy, for mode "linear". */
  readonly coefficients?: Float32Array
  readonly entropyCoefficients?: Float32Array
  /** Other tokens at the same places, [sampled tokens × topCount]; "logProbs" finds the most likely where there are none. */
  readonly topCount?: number
  readonly topTokens?: Int32Array
  /** d loss / d log p of these, for mode "linear". */
  readonly topCoefficients?: Float32Array
  /** For a critic: what follows each of them, and what it foretold before the batch's updates. */
  readonly returns?: Float32Array
  readonly oldValues?: Float32Array
  /** [spans]: what each was held to when it was sampled; absent where none was to anything. */
  readonly constraints?: readonly (NativeGrammar | undefined)[]
}

/** [sampled tokens], and [sampled tokens × topCount]; empty where it was not asked for. */
export interface NativeScores {
  readonly logProbs: Float32Array
  readonly entropies: Float32Array
  readonly hellingers: Float32Array
  /** Those that were found; empty where they were given. */
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
      readonly ratio: "token" | "sequence"
      readonly klWeight: number
      readonly klEstimator: string
      readonly entropyWeight: number
      readonly aggregation: string
      /** Of aggregation "sequence-mean-fixed-length". */
      readonly fixedLength?: number | undefined
      readonly unit: "span" | "row"
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
  /** [sampled tokens], NaN of those that were not computed. */
  readonly logProbs: Float32Array
}

export interface NativeParameter {
  readonly name: string
  readonly shape: readonly number[]
}

/** A model whose weights are trained: the policy, or its critic. */
export interface NativeLearner {
  /** Every weight in the order of the flat buffer. */
  readonly parameters: readonly NativeParameter[]
  /** The adapter's, by PEFT's names; empty without one. Then gradients and moments are of these alone. */
  readonly adapterParameters: readonly NativeParameter[]
  /** Of the buffer "merged": the model's, and a head that the adapter has parted from the embedding. */
  readonly mergedParameters: readonly NativeParameter[]
  /**
   * Copies `bytes` (little-endian, of `type`, a type of GGUF such as F32, BF16 or Q4_K) to parameter `index`, from element `offset` on. They are read where they lie until the
   * call is settled: nobody may change them.
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
  /** Optimizer steps taken so far. */
  steps: number
}

export interface NativeValueLearner extends NativeLearner {
  /** [sampled tokens] */
  predict(batch: NativeBatch): Started<Float32Array>
  /** Of a batch with `returns` and, where `clip` is finite, `oldValues`. */
  forwardBackward(batch: NativeBatch, loss: { clip: number }): Started<NativeValueReport>
}

/** Means over the sampled tokens. */
export interface NativeValueReport {
  readonly loss: number
  readonly tokens: number
  readonly clipFraction: number
  readonly value: number
}

export interface NativeSampleRequest {
  readonly prompt: Int32Array
  readonly maxTokens: number
  readonly temperature: number
  readonly stopTokens: Int32Array
  readonly key: readonly [number, number]
  readonly constraint?: NativeGrammar | undefined
  /** At most 20. */
  readonly topTokens: number
  readonly client: number
  /** Of the client. */
  readonly group: number
  /** Gets all that were read since it was called last. `true` ends the completion within a step; what it throws fails it. */
  readonly onTokens?: ((tokens: Int32Array) => unknown) | undefined
}

export interface NativeCompletion {
  readonly tokens: Int32Array
  readonly logProbs: Float32Array
  readonly entropies: Float32Array
  /** By a stop token, the end of what it is held to, or because no more were needed. */
  readonly stopped: boolean
  /** [tokens × topTokens], the most likely first; -1 where fewer may be. */
  readonly topTokens: Int32Array
  readonly topLogProbs: Float32Array
}

export interface NativeEngine extends NativeLearner {
  /** Fills the weights from a random key: N(0, deviation²), norms 1, biases 0. */
  initialize(key: readonly [number, number], deviation: number): Started<void>
  /** Keeps a frozen copy of the weights as the reference policy. */
  freezeReference(): Started<void>
  sample(request: NativeSampleRequest): Started<NativeCompletion>
  /** [tokens × vocabulary] */
  logits(tokens: Int32Array): Started<Float32Array>
  logProbs(
    batch: NativeBatch,
    of: "current" | "reference",
    temperature: number,
    /** Whether the reference's distributions are compared with. */
    hellinger: boolean,
  ): Started<NativeScores>
  forwardBackward(batch: NativeBatch, loss: NativeTrainingLoss): Started<NativeLossReport>
  /** Its critic, which starts from the weights that it has when it is first asked for. */
  critic(): Started<NativeValueLearner>
  /** Whether a completion depends on its request alone, not on what else is sampled at the time; once it is open. */
  readonly deterministic: boolean
  /** What its memory is taken by; undefined until it is open. Where opening fails, every call fails with that error. */
  readonly plan: NativeMemoryPlan | undefined
  /** Of sampling, since the start. */
  readonly statistics: {
    readonly computedTokens: number
    readonly reusedTokens: number
    readonly sampledTokens: number
    readonly preemptions: number
  }
  /** What is queued fails with DISPOSED; what runs is finished first. */
  dispose(): Promise<void>
}

/** The bytes that tokens stand for. */
export type NativeVocabulary = object

/** Texts over a vocabulary: what sampling can be held to. */
export interface NativeGrammar {
  /** Which tokens may follow these: bit t % 32 of word t / 32. undefined where they end the text. */
  allowed(tokens: Int32Array): Uint32Array | undefined
}

/** "merged", which can only be read, is the weights with the adapter in them. */
export type NativeBuffer = "weights" | "merged" | "adapter" | "gradients" | "firstMoment" | "secondMoment"

export interface NativeDeviceReport {
  readonly unavailable?: {
    readonly code: "not_built" | "no_driver" | "old_driver" | "no_device"
    readonly message: string
  }
  readonly devices: readonly {
    readonly name: string
    readonly computeCapability: string
    readonly memoryBytes: number
  }[]
  /** The driver's version; absent without one. */
  readonly driver?: string
  readonly cpu: {
    readonly instructionSet: string
    /** Processors that this process may use: its affinity and its container's quota count. */
    readonly threads: number
    /** Memory that it can still take: what is free, within its container's limits. */
    readonly memoryBytes: number
  }
}

/** Whether NVIDIA's matrix library (cuBLASLt) is found and passes a test; else `message` says why not. See core/device_report.h. */
export interface NativeMatmulLibraryReport {
  readonly found: boolean
  readonly path?: string
  readonly version?: string
  readonly message: string
  /** Why Hopper's own products do not stand in for it; absent where they would. */
  readonly withoutWgmma?: string
}

/** Policy loss, its gradient by the log-probabilities, and statistics. */
export interface NativeSurrogateReport {
  /** policyLoss + klWeight × kl */
  readonly loss: number
  readonly policyLoss: number
  readonly kl: number
  /** Share of tokens whose clipped term is the larger one, before the dual clip. */
  readonly clipFraction: number
  /** Share of tokens that the dual clip holds. */
  readonly dualClipFraction: number
  /** Mean of old log p - new log p. */
  readonly policyKl: number
  /** Mean importance ratio. */
  readonly ratio: number
  /** d loss / d logProbs, [tokens]. */
  readonly gradient: Float32Array
}

/** Value loss and its gradient by the values. */
export interface NativeValueLoss {
  readonly loss: number
  /** Share of tokens whose bounded term is strictly larger. */
  readonly clipFraction: number
  /** d loss / d values, [tokens]. */
  readonly gradient: Float64Array
}

export interface Native {
  readonly Engine: new (model: NativeModel, options: NativeEngineOptions) => NativeEngine
  /** Token i is bytes[offsets[i] … offsets[i + 1]), none of which it has where it stands for no text; `ends` end a text. */
  readonly Vocabulary: new (
    bytes: Uint8Array,
    offsets: Int32Array,
    ends: Int32Array,
  ) => NativeVocabulary
  /** Instructions of three numbers, sets of bytes of 32 each; see core/grammar/grammar.h. */
  readonly Grammar: new (
    vocabulary: NativeVocabulary,
    instructions: Int32Array,
    sets: Uint8Array,
  ) => NativeGrammar
  /** Hands over the class that native code throws. */
  setErrorClass(errorClass: typeof GigpoError): void
  deviceReport(): NativeDeviceReport
  /**
   * Keeps memory and environment of this process from others of its user (Linux; ends core dumps and debuggers that attach later). False
   * where nothing keeps them from others: other systems, and root.
   */
  hideProcess(): boolean
  /** Opens the first device to try the library there: that takes a moment. */
  matmulLibraryReport(): NativeMatmulLibraryReport
  /** What an engine of these options will take, of `availableBytes`; throws OUT_OF_MEMORY as the engine would. */
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
      rows: Int32Array
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
      ratio: string
    },
    device: "cpu" | "cuda",
  ): NativeSurrogateReport
  valueLoss(
    input: { values: Float64Array; returns: Float64Array; oldValues?: Float64Array; mask?: Float64Array },
    clip: number,
  ): NativeValueLoss
  /** State i is bytes[offsets[i] … offsets[i + 1]) of tasks[i]. */
  /** Numbers in a format of GGUF: F32, F16, BF16, Q8_0, Q4_0, Q5_0, Q4_K or Q6_K. The values are read until the promise is settled. */
  quantize(type: string, values: Float32Array): Promise<Uint8Array>
  /** Numbers of any format that is read, from whole blocks. The bytes are read until the promise is settled. */
  dequantize(type: string, bytes: Uint8Array): Promise<Float32Array>
  groupAnchors(tasks: Int32Array, bytes: Uint8Array, offsets: Float64Array): { groups: Int32Array; count: number }
  /** The same off the event loop. The bytes are read where they lie until it is settled: nobody else may have them. */
  groupAnchorsOnGpu(
    tasks: Int32Array,
    bytes: Uint8Array,
    offsets: Float64Array,
  ): Promise<{ groups: Int32Array; count: number }>
}

/** Builds the addon from the package's sources, whatever was built there before: `compile` would keep the options of then. */
export function buildCommand(...options: readonly string[]): string {
  // cmake-js would take Microsoft's compiler, which the sources are not for.
  const compiler = process.platform === "win32" ? ["-G Ninja --CDCMAKE_CXX_COMPILER=clang++"] : []
  return ["npx --yes cmake-js@8 rebuild -d", `"${packageFolder()}"`, ...compiler, ...options].join(" ")
}

let loaded: Native | undefined

/** The addon: a prebuilt binary of this package, or what was built from source beside it. Loaded at first use. */
export function native(): Native {
  if (loaded) return loaded
  const root = packageFolder()
  const require = createRequire(import.meta.url)
  try {
    loaded = (require("node-gyp-build") as (packageRoot: string) => Native)(root)
  } catch (cause) {
    const needs = process.platform === "win32" ? "LLVM-MinGW, Ninja and CMake" : "a C++20 compiler and CMake"
    throw new GigpoError(
      "NATIVE_MISSING",
      `No native build of gigpo loads on ${process.platform}-${process.arch} (Node ${process.version}). Build it from ` +
        `source with ${needs}: ${buildCommand()}`,
      { cause },
    )
  }
  loaded.setErrorClass(GigpoError)
  return loaded
}
