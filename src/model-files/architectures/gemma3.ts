import type { ConfigFields } from "../config-fields.ts"
import type { Family } from "../family.ts"
import { gemma3Gguf } from "../gguf/gemma3.ts"
import { type LayerType, layerTypes, typesOf, windowSize, windowsOf } from "../layer-types.ts"

/** Gemma 3: norms of both branches, and a rotary table of their own for the layers with windows. */
export const gemma3: Family = {
  modelType: "gemma3_text",
  classifier: "Gemma3TextForSequenceClassification",
  defaults: {
    vocabularySize: 262208,
    hiddenSize: 2304,
    intermediateSize: 9216,
    layers: 26,
    heads: 8,
    keyValueHeads: 4,
    headSize: 256,
    queryScalar: 256,
    maxPositions: 131072,
    tieEmbeddings: true,
  },
  ropeTheta: 1_000_000,
  localRopeTheta: 10_000,
  form: { queryKeyNorm: true, gate: "gelu_tanh", normOffset: 1, branchNorms: true },
  scaledEmbedding: true,
  activation: { key: "hidden_activation", names: ["gelu_pytorch_tanh"] },
  layers: {
    windows(fields, layers) {
      const types = layerTypes(fields, layers) ?? everySixth(fields, layers)
      return types.includes("sliding_attention") ? windowsOf(types, windowSize(fields), fields) : types.map(() => 0)
    },
    write: (table, window) => ({ ...(window > 0 && { sliding_window: window }), layer_types: typesOf(table) }),
  },
  keys: [
    "hidden_activation",
    "query_pre_attn_scalar",
    "rope_local_base_freq",
    "sliding_window_pattern",
    // Without effect.
    "_sliding_window_pattern",
    "cache_implementation",
  ],
  gguf: gemma3Gguf,
}

/** Types of the layers without a list: every sixth one, or one of `sliding_window_pattern`, sees all tokens. */
function everySixth(fields: ConfigFields, layers: number): LayerType[] {
  const period = fields.size("sliding_window_pattern", 2 ** 30, 6)
  return Array.from({ length: layers }, (_, i) => ((i + 1) % period === 0 ? "full_attention" : "sliding_attention"))
}
