import type { ConfigJson } from "../config-fields.ts"
import { warnOfUnknownKeys } from "../known-keys.ts"
import { ropeScalingJson, yarnAttentionFactor } from "../rotary-config.ts"
import { endTokens } from "./end-tokens.ts"
import { ggufFamilies, ggufFamily, ropeFactors } from "./families.ts"
import { badGguf, type GgufHeader, type GgufValue } from "./metadata.ts"
import { type GgufFile, openGguf } from "./open.ts"
import { llama3Scaling } from "./rope-factors.ts"

/** Keys of an architecture that are read or that do not change the computation. */
const known = new Set([
  "vocab_size",
  "context_length",
  "embedding_length",
  "block_count",
  "feed_forward_length",
  "attention.head_count",
  "attention.head_count_kv",
  "attention.key_length",
  "attention.value_length",
  "attention.layer_norm_rms_epsilon",
  "rope.dimension_count",
  "rope.freq_base",
  "rope.scaling.type",
  "rope.scaling.factor",
  "rope.scaling.original_context_length",
  "rope.scaling.attn_factor",
  "rope.scaling.finetuned",
  "expert_count",
  "expert_used_count",
  "attention.causal",
  "pooling_type",
  "tensor_data_layout",
])

/**
 * Reads the configuration of a GGUF file in the form of a Hugging Face config.json.
 *
 * @throws GigpoError errors of `openGguf` and `ggufConfig`
 */
export async function readGgufConfig(path: string): Promise<ConfigJson> {
  const file = await openGguf(path)
  try {
    return ggufConfig(file, await readFactors(file), path)
  } finally {
    await file.close()
  }
}

/** Factors of the rotary frequencies, [headSize / 2]; undefined if the file has none. */
async function readFactors({ tensors, path, read }: GgufFile): Promise<Float32Array | undefined> {
  const tensor = tensors.get(ropeFactors)
  if (!tensor) return undefined
  if (tensor.type.name !== "F32" || tensor.bytes > 4096)
    throw badGguf(path, `${ropeFactors} must be F32 with at most 1024 elements`)
  const values = new Float32Array(tensor.bytes / 4)
  await read(tensor, new Uint8Array(values.buffer), 0)
  return values
}

/**
 * Returns the configuration of a GGUF file in the form of a Hugging Face config.json. `parseModelConfig` checks the values.
 *
 * @param factors - values of the tensor `rope_freqs.weight` where the file has one.
 * @throws GigpoError `BAD_MODEL` for other architectures, mixtures of experts, and sizes that differ between layers.
 */
export function ggufConfig(
  { metadata, tensors }: Pick<GgufHeader, "metadata" | "tensors">,
  factors: Float32Array | undefined,
  file: string,
): ConfigJson {
  const name = metadata.get("general.architecture")
  const family = ggufFamily(metadata)
  if (!family)
    throw badGguf(
      file,
      `its architecture ${JSON.stringify(name)} is not supported; supported are ${[...ggufFamilies.keys()].join(", ")}`,
    )
  const keys = new Map(
    [...metadata]
      .filter(([key]) => key.startsWith(`${name}.`))
      .map(([key, value]) => [key.slice(`${name}.`.length), value]),
  )
  warnOfUnknownKeys(file, Object.fromEntries([...keys].map(([key, value]) => [`${name}.${key}`, value])), {
    has: (key) =>
      known.has(key.slice(`${name}.`.length)) || family.keys?.includes(key.slice(`${name}.`.length)) === true,
  })
  const number = (key: string): number | undefined => single(keys.get(key), `${name}.${key}`, file)
  const [experts, heads, keySize] = [
    number("expert_count") ?? 0,
    number("attention.head_count"),
    number("attention.key_length"),
  ]
  if (experts > 0) throw badGguf(file, `it is a mixture of ${experts} experts, which is not supported`)
  const hidden = number("embedding_length")
  const headSize = keySize ?? (hidden !== undefined && heads ? hidden / heads : undefined)
  for (const key of ["attention.value_length", "rope.dimension_count"])
    if ((number(key) ?? headSize) !== headSize)
      throw badGguf(file, `${name}.${key} is ${number(key)}, but the head size is ${headSize}`)
  const positions = number("context_length")
  const base = number("rope.freq_base") ?? family.ropeTheta ?? 10_000
  return {
    architectures: [`${family.architecture}ForCausalLM`],
    model_type: family.modelType,
    vocab_size: tensors.get("token_embd.weight")?.shape[0],
    hidden_size: hidden,
    intermediate_size: number("feed_forward_length"),
    num_hidden_layers: number("block_count"),
    num_attention_heads: heads,
    num_key_value_heads: number("attention.head_count_kv") ?? heads,
    head_dim: headSize,
    hidden_act: "silu",
    // float32 in the file: 1e-5 is stored as 9.999999747378752e-6.
    rms_norm_eps: shortest(number("attention.layer_norm_rms_epsilon")),
    rope_theta: base,
    ...scaling(keys, factors, { headSize, base }, file),
    tie_word_embeddings: !tensors.has("output.weight"),
    max_position_embeddings: positions,
    ...ids(metadata),
    ...family.config?.({ number, get: (key) => keys.get(key), fail: (what) => badGguf(file, what) }),
  }
}

/** Keys by which llama.cpp changes a YaRN scaling in ways that config.json has no words for. */
const otherYarn = ["yarn_log_multiplier", "yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow"]

/** Returns the rope scaling of config.json; a type such as linear is left to `parseModelConfig` to judge. */
function scaling(
  keys: ReadonlyMap<string, GgufValue>,
  factors: Float32Array | undefined,
  model: { readonly headSize: number | undefined; readonly base: number },
  file: string,
): ConfigJson {
  const { headSize, base } = model
  if (factors) {
    const found = headSize === undefined ? undefined : llama3Scaling(factors, headSize, base)
    if (!found)
      throw badGguf(
        file,
        `the factors of ${ropeFactors} are not those of a Llama 3 model, the only ones that are supported`,
      )
    return { rope_scaling: ropeScalingJson(found) }
  }
  const type = keys.get("rope.scaling.type") ?? "none"
  const other = (type === "yarn" ? otherYarn : ["attn_factor"]).find((key) => keys.has(`rope.scaling.${key}`))
  if (other) throw badGguf(file, `it has rope.scaling.${other}, which is not supported`)
  if (type === "none") return {}
  const [factor, original] = [keys.get("rope.scaling.factor"), keys.get("rope.scaling.original_context_length")]
  const relative = keys.get("rope.scaling.attn_factor")
  return {
    rope_scaling: {
      rope_type: type,
      factor,
      ...(typeof relative === "number" &&
        typeof factor === "number" && { attention_factor: relative * yarnAttentionFactor(factor) }),
      ...(original !== undefined && { original_max_position_embeddings: original }),
    },
  }
}

/** Returns token ids under their names in config.json. End-of-turn tokens end a completion like the end of text. */
function ids(metadata: ReadonlyMap<string, GgufValue>): ConfigJson {
  const id = (key: string) => metadata.get(`tokenizer.ggml.${key}_token_id`)
  const ends = endTokens(metadata)
  const [bos, pad] = [id("bos"), id("padding")]
  return {
    ...(bos !== undefined && { bos_token_id: bos }),
    ...(ends.length > 0 && { eos_token_id: ends.length === 1 ? ends[0] : ends }),
    ...(pad !== undefined && { pad_token_id: pad }),
  }
}

/** Returns the value of a numeric key, which may be an array with the same number for every layer. */
function single(value: GgufValue | undefined, key: string, file: string): number | undefined {
  if (value === undefined || typeof value === "number") return value
  if (!Array.isArray(value) || value.length === 0) throw badGguf(file, `${key} must be a number`)
  if (!value.every((one) => one === value[0]))
    throw badGguf(file, `${key} differs between layers, which is not supported`)
  return single(value[0] as GgufValue, key, file)
}

/** Returns the shortest decimal number that rounds to the same float32. */
function shortest(value: number | undefined): number | undefined {
  if (value === undefined) return undefined
  for (let digits = 1; digits < 9; digits++) {
    const candidate = Number(value.toPrecision(digits))
    if (Math.fround(candidate) === Math.fround(value)) return candidate
  }
  return value
}
