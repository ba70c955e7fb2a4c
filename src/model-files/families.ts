import type { ModelConfig } from "./model-config.ts"

/** Form of the layers, where it differs from that of Llama. */
export interface LayerForm {
  /** Function of the gate of the feed-forward network: gelu with tanh instead of silu. */
  readonly gate?: "gelu_tanh"
  /** Number that is added to the weights of RMS norms: x̂ · (w + 1). */
  readonly normOffset?: 1
  /** Whether the outputs of attention and feed-forward network are normalized before they are added. */
  readonly branchNorms?: true
}

/** Description of an architecture: its names, transformers' defaults of missing fields where families differ, and its layers. */
export interface Family {
  readonly modelType: string
  /** Name of the sequence classifier in transformers. Default `<architecture>ForSequenceClassification`. */
  readonly classifier?: string
  readonly vocabularySize: number
  readonly intermediateSize: number
  readonly maxPositions: number
  readonly keyValueHeads?: number
  readonly headSize?: number
  readonly hiddenSize?: number
  readonly layers?: number
  readonly heads?: number
  readonly ropeTheta?: number
  readonly tieEmbeddings?: boolean
  readonly queryKeyValueBias?: boolean
  readonly queryKeyNorm?: boolean
  /** Field that names the function of the gate, with its names. The first is written. Default `hidden_act`: silu or swish. */
  readonly activation?: { readonly key: string; readonly names: readonly string[] }
  readonly form?: LayerForm
  /** Whether embeddings are multiplied by √hidden size. */
  readonly scaledEmbedding?: boolean
  /** Default of query_pre_attn_scalar, by whose square root scores are divided; without it, they are divided by that of the head size. */
  readonly queryScalar?: number
  /** Default base of the rotary table of layers with windows, where they have a table of their own. */
  readonly localRopeTheta?: number
  /** Fields of config.json that only this architecture has. */
  readonly keys?: readonly string[]
}

export const silu = { key: "hidden_act", names: ["silu", "swish"] } as const

const qwen = { vocabularySize: 151936, intermediateSize: 22016, maxPositions: 32768, keyValueHeads: 32 }

/** All architectures that are computed. */
export const families: Readonly<Record<ModelConfig["architecture"], Family>> = {
  Qwen2: { modelType: "qwen2", ...qwen, queryKeyValueBias: true },
  Qwen3: { modelType: "qwen3", ...qwen, headSize: 128, queryKeyNorm: true },
  Llama: { modelType: "llama", vocabularySize: 32000, intermediateSize: 11008, maxPositions: 2048 },
  Mistral: {
    modelType: "mistral",
    vocabularySize: 32000,
    intermediateSize: 14336,
    maxPositions: 131072,
    keyValueHeads: 8,
  },
  SmolLM3: {
    modelType: "smollm3",
    vocabularySize: 128256,
    hiddenSize: 2048,
    intermediateSize: 11008,
    layers: 36,
    heads: 16,
    keyValueHeads: 4,
    maxPositions: 32768,
    ropeTheta: 2_000_000,
    tieEmbeddings: true,
  },
  Gemma3: {
    modelType: "gemma3_text",
    classifier: "Gemma3TextForSequenceClassification",
    vocabularySize: 262208,
    hiddenSize: 2304,
    intermediateSize: 9216,
    layers: 26,
    heads: 8,
    keyValueHeads: 4,
    headSize: 256,
    maxPositions: 131072,
    ropeTheta: 1_000_000,
    tieEmbeddings: true,
    queryKeyNorm: true,
    activation: { key: "hidden_activation", names: ["gelu_pytorch_tanh"] },
    form: { gate: "gelu_tanh", normOffset: 1, branchNorms: true },
    scaledEmbedding: true,
    queryScalar: 256,
    localRopeTheta: 10_000,
    keys: [
      "hidden_activation",
      "query_pre_attn_scalar",
      "rope_local_base_freq",
      "sliding_window_pattern",
      // Without effect.
      "_sliding_window_pattern",
      "cache_implementation",
    ],
  },
}

export const architectures = Object.keys(families) as ModelConfig["architecture"][]

/** Returns what an architecture fixes in a configuration, given its hidden size. */
export function fixedByFamily({ architecture, hiddenSize }: Pick<ModelConfig, "architecture" | "hiddenSize">) {
  const { form, scaledEmbedding, queryKeyNorm = false, queryKeyValueBias = false } = families[architecture]
  return {
    queryKeyValueBias,
    queryKeyNorm,
    ...form,
    ...(scaledEmbedding && { embeddingScale: Math.sqrt(hiddenSize) }),
  }
}
