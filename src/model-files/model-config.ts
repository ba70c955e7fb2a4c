import { join } from "node:path"
import { replaceFile } from "../files/atomic-file.ts"
import { ioError, isSystemError } from "../files/io-error.ts"
import { readLinked } from "../files/regular-file.ts"
import { memberTexts, parseJson, textOf } from "../json/text.ts"
import { GigpoError } from "../util/errors.ts"
import { type ConfigFields, type ConfigJson, configFields, describe, largestConfig } from "./config-fields.ts"
import { checkConfigKeys } from "./config-keys.ts"
import { architectures, families, fixedByFamily, type LayerForm, silu } from "./families.ts"
import { readGgufConfig } from "./gguf/config.ts"
import { isGguf } from "./gguf/open.ts"
import { type LayerKind, layerTableJson, parseLayerTable } from "./layer-table.ts"
import { parseLayerRotary, parseRotary, type Rotary, ropeScalingJson } from "./rotary-config.ts"

/** Architecture and sizes of a decoder with grouped-query attention, rotary positions, RMS norms and a gated feed-forward network. */
export interface ModelConfig extends Rotary, LayerForm {
  readonly architecture: "Qwen2" | "Qwen3" | "Llama" | "Mistral" | "SmolLM3" | "Gemma3"
  readonly vocabularySize: number
  readonly hiddenSize: number
  readonly intermediateSize: number
  readonly layers: number
  readonly heads: number
  readonly keyValueHeads: number
  /** Columns of one attention head; an even number. */
  readonly headSize: number
  readonly rmsNormEpsilon: number
  /** Rotary tables 1, 2, … of `layerTable`; table 0 is that of the model. Absent if there are none. */
  readonly otherRotary?: readonly Rotary[]
  /** Number by whose square root scores are divided. Default the head size. */
  readonly queryScalar?: number
  /** Factor of the embeddings, rounded to the type of the weights. Default 1. */
  readonly embeddingScale?: number
  /** One entry for each layer. Absent if every layer sees all tokens and is rotated. */
  readonly layerTable?: readonly LayerKind[]
  /** Whether the language-model head shares the weights of the embedding. */
  readonly tieEmbeddings: boolean
  /** Whether the query, key and value projections have biases (Qwen2). */
  readonly queryKeyValueBias: boolean
  /** Whether queries and keys of each head are normalized by RMS (Qwen3). */
  readonly queryKeyNorm: boolean
  /** Maximum number of tokens of a sequence. */
  readonly maxPositions: number
}

/** Output layer: that of a language model, or that of a critic (`score.weight`, [1, hidden]). */
export type Head = "language" | "value"

/** Reads the configuration of the model in a folder or GGUF file. Throws as `parseModelConfig`, and `IO`. */
export async function readModelConfig(directory: string): Promise<ModelConfig> {
  return parseModelConfig(await readConfigJson(directory), join(directory, "config.json"))
}

/**
 * Reads `config.json`, or the equivalent metadata of a GGUF file. The fields are not checked. `writeModelConfig` takes the result
 * as `original`.
 *
 * @throws GigpoError `BAD_MODEL`, `IO`
 */
export async function readConfigJson(directory: string): Promise<ConfigJson> {
  if (await isGguf(directory)) return await readGgufConfig(directory)
  const path = join(directory, "config.json")
  try {
    return configFields(parseJson(await readLinked(path, largestConfig)), path).json
  } catch (cause) {
    if (GigpoError.is(cause)) throw cause
    const missing = isSystemError(cause) && (cause.code === "ENOENT" || cause.code === "ENOTDIR")
    if (isSystemError(cause) && !missing) throw ioError("read", path, cause)
    const fix = missing ? "is missing. Give the path of a" : "is not valid JSON. Download it again, or give another"
    throw new GigpoError("BAD_MODEL", `${path} ${fix} downloaded Hugging Face model folder.`, { cause })
  }
}

/**
 * Parses the config.json of the architectures of `ModelConfig` as transformers 4 and 5 write it.
 * Missing fields get transformers' defaults. Settings that would change the computation and are not supported are refused.
 * So are sizes beyond any published model, before anything is allocated. Unknown fields cause a warning.
 *
 * @param file - name of the file in messages.
 * @throws GigpoError `BAD_MODEL`
 */
export function parseModelConfig(json: unknown, file = "config.json"): ModelConfig {
  const fields = configFields(json, file)
  const architecture = findArchitecture(fields)
  const family = families[architecture]
  refuseUnsupported(fields, architecture)
  checkConfigKeys(fields, file, family)

  const hiddenSize = fields.size("hidden_size", 65536, family.hiddenSize ?? 4096)
  const heads = fields.size("num_attention_heads", 1024, family.heads ?? 32)
  const layers = fields.size("num_hidden_layers", 1000, family.layers ?? 32)
  // Null differs from a missing field here: it means "as many as query heads" and "hidden size / heads".
  const ifMissing = (key: string, value: number | undefined) => (fields.json[key] === undefined ? value : undefined)
  const keyValueDefault = ifMissing("num_key_value_heads", family.keyValueHeads) ?? heads
  const keyValueHeads = fields.size("num_key_value_heads", 1024, keyValueDefault)
  if (heads % keyValueHeads !== 0) {
    throw fields.fail(`num_attention_heads (${heads}) is not a multiple of num_key_value_heads (${keyValueHeads})`)
  }
  const headSizeDefault = ifMissing("head_dim", family.headSize) ?? hiddenSize / heads
  if ((fields.json.head_dim ?? undefined) === undefined && !Number.isInteger(headSizeDefault)) {
    throw fields.fail(`hidden_size (${hiddenSize}) is not a multiple of num_attention_heads (${heads})`)
  }
  const headSize = fields.size("head_dim", 1024, headSizeDefault)
  if (headSize % 2 !== 0) throw fields.fail(`the head size (${headSize}) is odd, but rotary positions need pairs`)
  const maxPositions = fields.size("max_position_embeddings", 2 ** 30, family.maxPositions)
  const layerTable = parseLayerTable(fields, architecture, layers)
  const rotaryDefaults = { maxPositions, ropeTheta: family.ropeTheta ?? 10_000 }
  const { localRopeTheta, queryScalar } = family

  return {
    architecture,
    vocabularySize: fields.size("vocab_size", 2 ** 21, family.vocabularySize),
    hiddenSize,
    intermediateSize: fields.size("intermediate_size", 2 ** 20, family.intermediateSize),
    layers,
    heads,
    keyValueHeads,
    headSize,
    rmsNormEpsilon: fields.positive("rms_norm_eps", 1e-6),
    ...(localRopeTheta === undefined
      ? parseRotary(fields, rotaryDefaults, file)
      : parseLayerRotary(fields, { ...rotaryDefaults, localRopeTheta }, file)),
    ...(layerTable && { layerTable }),
    ...(queryScalar !== undefined && { queryScalar: fields.positive("query_pre_attn_scalar", queryScalar) }),
    tieEmbeddings: fields.flag("tie_word_embeddings", family.tieEmbeddings),
    ...fixedByFamily({ architecture, hiddenSize }),
    maxPositions,
  }
}

/** Fields for the number of experts: those of Qwen, of Mixtral and gpt-oss, and of DeepSeek. */
const expertKeys = ["num_experts", "num_local_experts", "n_routed_experts"]

/** Returns the architecture by `architectures`, or by `model_type`, which a configuration saved without a model has only. */
function findArchitecture({ json, fail }: ConfigFields): ModelConfig["architecture"] {
  const supported = `supported are ${architectures.map((name) => `${name}ForCausalLM`).join(", ")}`
  const named = json.architectures ?? undefined
  const first = Array.isArray(named) ? named[0] : named
  const found = architectures.find((name) =>
    first === undefined ? families[name].modelType === json.model_type : first === `${name}ForCausalLM`,
  )
  if (!found) {
    const experts = expertKeys.map((key) => json[key]).find((count) => typeof count === "number" && count > 0)
    const mixture = experts === undefined ? "" : `, a mixture of ${experts} experts,`
    throw fail(`the architecture ${describe(first ?? json.model_type)}${mixture} is not supported; ${supported}`)
  }
  const type = json.model_type ?? families[found].modelType
  if (type !== families[found].modelType) throw fail(`model_type ${describe(type)} does not fit ${found}ForCausalLM`)
  return found
}

function refuseUnsupported(fields: ConfigFields, architecture: ModelConfig["architecture"]): void {
  const { json, fail } = fields
  if ((json.quantization_config ?? undefined) !== undefined) {
    throw fail("the model is quantized (quantization_config), and quantized weights cannot be trained")
  }
  const { key, names } = families[architecture].activation ?? silu
  const activation = json[key] ?? names[0]
  if (!names.some((name) => name === activation))
    throw fail(`${key} is ${describe(activation)}; only "${names[0]}" is supported`)
  if (fields.flag("mlp_bias")) throw fail("mlp_bias is true; biases in the feed-forward network are not supported")
  // attention_bias would add a bias to the output projection too. Qwen2 always has its three biases, whatever the field says.
  if (architecture !== "Qwen2" && fields.flag("attention_bias")) {
    throw fail(`attention_bias is true; ${architecture} models with it are not supported`)
  }
}

/**
 * Writes the `config.json` of a model with weights of `dtype`. Rotary positions have the layout of transformers 4, which
 * transformers 5 reads too.
 *
 * @param options.original - config.json that the model was opened with; fields that `ModelConfig` does not have (token ids,
 * dropout, …) are copied from it.
 * @param options.head - "value" writes a sequence classifier with one label, as transformers opens it. Default "language".
 */
export async function writeModelConfig(directory: string, config: ModelConfig, options: ConfigOptions): Promise<void> {
  const path = join(directory, "config.json")
  await replaceFile(path, formatConfig(modelConfigJson(config, options), options.original))
}

/** Writes one line per field. Unchanged values keep their original spelling: 1e-06 and 10000.0 are floats in Python. */
function formatConfig(json: ConfigJson, original: ConfigJson = {}): string {
  const texts = memberTexts(textOf(original) ?? "{}")
  const fields = Object.entries(json).filter(([, value]) => value !== undefined)
  const lines = fields.map(([key, value]) => {
    const kept = Object.is(value, original[key]) ? texts.get(key) : undefined
    return `  ${JSON.stringify(key)}: ${kept ?? JSON.stringify(value, null, 2).replaceAll("\n", "\n  ")}`
  })
  return `{\n${lines.join(",\n")}\n}\n`
}

interface ConfigOptions {
  readonly dtype: "F32" | "BF16"
  readonly original?: ConfigJson
  readonly head?: Head
}

/** Fields of a sequence classifier with one label; transformers counts the labels in id2label. */
const classifierFields = { num_labels: 1, id2label: { 0: "LABEL_0" }, label2id: { LABEL_0: 0 } } as const

function modelConfigJson(config: ModelConfig, options: ConfigOptions): ConfigJson {
  const { rope_parameters, rope_scaling, head_dim, original_max_position_embeddings, ...kept } = options.original ?? {}
  const { architecture, headSize, heads, hiddenSize, ropeScaling: scaling } = config
  const dtype = options.dtype === "F32" ? "float32" : "bfloat16"
  const isClassifier = options.head === "value"
  const {
    modelType,
    classifier = `${architecture}ForSequenceClassification`,
    activation = silu,
  } = families[architecture]
  const localRotary = config.otherRotary?.[0]
  return {
    ...kept,
    ...(isClassifier && classifierFields),
    architectures: [isClassifier ? classifier : `${architecture}ForCausalLM`],
    model_type: modelType,
    vocab_size: config.vocabularySize,
    hidden_size: hiddenSize,
    intermediate_size: config.intermediateSize,
    num_hidden_layers: config.layers,
    num_attention_heads: heads,
    num_key_value_heads: config.keyValueHeads,
    // transformers' Qwen2Config lacks this field, so it is written only where it differs from the default.
    ...((architecture !== "Qwen2" || headSize * heads !== hiddenSize) && { head_dim: headSize }),
    [activation.key]: activation.names[0],
    rms_norm_eps: config.rmsNormEpsilon,
    ...(config.queryScalar !== undefined && { query_pre_attn_scalar: config.queryScalar }),
    rope_theta: config.ropeTheta,
    ...(localRotary && { rope_local_base_freq: localRotary.ropeTheta }),
    ...(scaling && { rope_scaling: ropeScalingJson(scaling) }),
    ...layerTableJson(config),
    tie_word_embeddings: config.tieEmbeddings,
    max_position_embeddings: config.maxPositions,
    // The names of this field in transformers 4 and 5.
    torch_dtype: dtype,
    dtype,
  }
}
