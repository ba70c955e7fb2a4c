import { families } from "../model-files/families.ts"
import type { Family } from "../model-files/family.ts"
import type { GgufConventions } from "../model-files/gguf/conventions.ts"
import type { TypedValue } from "../model-files/gguf/write.ts"
import { layerTable } from "../model-files/layer-table.ts"
import type { ModelConfig } from "../model-files/model-config.ts"
import { isPlainYarn, yarnAttentionFactor } from "../model-files/rotary-config.ts"
import { GigpoError } from "../util/errors.ts"
import { type Recipe, recipes } from "./recipes.ts"

const text = (value: string): TypedValue => ({ type: "string", value })
const u32 = (value: number): TypedValue => ({ type: "uint32", value })
const f32 = (value: number): TypedValue => ({ type: "float32", value })

/**
 * Returns the conventions in GGUF files for a model.
 *
 * @throws GigpoError `BAD_MODEL` if llama.cpp would compute the layers otherwise: it has windows in Gemma 3 only, and in SmolLM3 every fourth
 * layer without rotary positions.
 */
export function conventionsOf(config: ModelConfig): GgufConventions {
  const { architecture, maxPositions } = config
  const { exportedAs = architecture }: Family = families[architecture]
  const { gguf }: Family = families[exportedAs]
  if (!gguf) throw new GigpoError("BAD_MODEL", `${architecture} models cannot be exported as GGUF.`)
  if (gguf.metadata) {
    gguf.metadata(config)
    return gguf
  }
  const table = layerTable(config)
  if (table.some(({ window }) => window > 0 && window < maxPositions))
    throw new GigpoError("BAD_MODEL", `${architecture} models with sliding windows cannot be exported as GGUF.`)
  const { notRotatedEvery = Number.POSITIVE_INFINITY } = gguf
  if (table.some(({ rope }, i) => rope !== ((i + 1) % notRotatedEvery === 0 ? "none" : 0)))
    throw new GigpoError(
      "BAD_MODEL",
      "Other layers without rotary positions than every fourth cannot be exported as GGUF.",
    )
  return gguf
}

/** Returns the metadata that describes a model, without its tokenizer. */
export function modelMetadata(config: ModelConfig, title: string, recipe: Recipe): Map<string, TypedValue> {
  const { name, metadata } = conventionsOf(config)
  const own: Readonly<Record<string, TypedValue>> = {
    block_count: u32(config.layers),
    context_length: u32(config.maxPositions),
    embedding_length: u32(config.hiddenSize),
    feed_forward_length: u32(config.intermediateSize),
    "attention.head_count": u32(config.heads),
    "attention.head_count_kv": u32(config.keyValueHeads),
    "attention.key_length": u32(config.headSize),
    "attention.value_length": u32(config.headSize),
    "attention.layer_norm_rms_epsilon": f32(config.rmsNormEpsilon),
    "rope.freq_base": f32(config.ropeTheta),
    "rope.dimension_count": u32(config.headSize),
    ...yarnMetadata(config),
    ...metadata?.(config),
    vocab_size: u32(config.vocabularySize),
  }
  return new Map<string, TypedValue>([
    ["general.architecture", text(name)],
    ["general.type", text("model")],
    ["general.name", text(title)],
    ["general.file_type", u32(recipes[recipe].fileType)],
    ["general.quantization_version", u32(2)],
    ...Object.entries(own).map(([key, value]) => [`${name}.${key}`, value] as const),
  ])
}

/**
 * Returns the rope scaling of a YaRN model; that of Llama 3 is a tensor. llama.cpp computes the bounds of the ramp as transformers does with
 * `truncate` and the usual betas, and multiplies `attn_factor` by YaRN's own factor of cosines and sines.
 */
function yarnMetadata({ ropeScaling }: ModelConfig): Readonly<Record<string, TypedValue>> {
  if (ropeScaling?.type !== "yarn") return {}
  const { factor, attentionFactor, originalMaxPositions } = ropeScaling
  if (!isPlainYarn(ropeScaling))
    throw new GigpoError("BAD_MODEL", "YaRN with its own beta_fast, beta_slow or truncate cannot be exported as GGUF.")
  const relative = attentionFactor / yarnAttentionFactor(factor)
  return {
    "rope.scaling.type": text("yarn"),
    "rope.scaling.factor": f32(factor),
    "rope.scaling.original_context_length": u32(originalMaxPositions),
    ...(relative !== 1 && { "rope.scaling.attn_factor": f32(relative) }),
  }
}
