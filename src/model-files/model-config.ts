import { join } from "node:path"
import { ioError, isSystemError } from "../files/io-error.ts"
import { readLinked } from "../files/regular-file.ts"
import { parseJson } from "../json/text.ts"
import type { NativeModel } from "../native/model.ts"
import { GigpoError } from "../util/errors.ts"
import { type ConfigFields, type ConfigJson, configFields, describe, largestConfig } from "./config-fields.ts"
import { checkConfigKeys } from "./config-keys.ts"
import { architectures, families, formOf, modelName, silu } from "./families.ts"
import type { Family } from "./family.ts"
import { isGguf } from "./gguf/is-gguf.ts"
import { parseLayerTable } from "./layer-table.ts"
import { misfitOf, modelFields, readFields } from "./model-fields.ts"
import { parseLayerRotary, parseRotary } from "./rotary-config.ts"
import { languageFields } from "./vision/language-fields.ts"
import type { VisionFamily } from "./vision/vision-family.ts"

/** Architecture and sizes of a decoder with grouped-query attention, rotary positions, RMS norms and a gated feed-forward network. */
export interface ModelConfig extends NativeModel {
  /** Name of the architecture, as in `architectures` of config.json. */
  readonly architecture: keyof typeof families
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
  if (await isGguf(directory)) return await (await import("./gguf/config.ts")).readGgufConfig(directory)
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
 * Missing fields get transformers' defaults. Settings that would change the computation and are not supported are rejected.
 * So are sizes beyond any published model, before anything is allocated. Unknown fields cause a warning.
 *
 * @param file - name of the file in messages.
 * @throws GigpoError `BAD_MODEL`
 */
export function parseModelConfig(json: unknown, file = "config.json"): ModelConfig {
  const root = configFields(json, file)
  const architecture = findArchitecture(root)
  const family: Family = families[architecture]
  const fields = family.vision ? languageFields(root, family.vision, file) : root
  refuseUnsupported(fields, architecture, family)
  checkConfigKeys(fields, file, family)

  const values = readFields(fields, family.defaults)
  const { hiddenSize, layers, maxPositions } = values
  const misfit = misfitOf(values, (name) => modelFields[name].key)
  if (misfit !== undefined) throw fields.fail(misfit)
  const layerTable = parseLayerTable(fields, family, layers)
  const { ropeTheta = 10_000, localRopeTheta } = family
  return {
    architecture,
    ...values,
    ...(localRopeTheta === undefined
      ? parseRotary(fields, { maxPositions, ropeTheta }, file)
      : parseLayerRotary(fields, { maxPositions, ropeTheta, localRopeTheta }, file)),
    ...(layerTable && { layerTable }),
    ...(family.vision && { vision: parseVision(root, fields, family.vision, values.vocabularySize, file) }),
    ...formOf({ architecture, hiddenSize }),
  }
}

function parseVision(
  root: ConfigFields,
  text: ConfigFields,
  tower: VisionFamily,
  vocabularySize: number,
  file: string,
) {
  const vision = tower.parse(root, text, file)
  if (vision.imageToken < vocabularySize) return vision
  throw root.fail(`image_token_id is ${vision.imageToken}, but the vocabulary has ${vocabularySize} tokens`)
}

/** Fields for the number of experts: those of Qwen, of Mixtral and gpt-oss, and of DeepSeek. */
const expertKeys = ["num_experts", "num_local_experts", "n_routed_experts"]

/** Returns the architecture by `architectures`, or by `model_type`, which a configuration saved without a model has only. */
function findArchitecture({ json, fail }: ConfigFields): ModelConfig["architecture"] {
  const supported = `supported are ${architectures.map(modelName).join(", ")}`
  const named = json.architectures ?? undefined
  const first = Array.isArray(named) ? named[0] : named
  const found = architectures.find((name) =>
    first === undefined ? families[name].modelType === json.model_type : first === modelName(name),
  )
  if (!found) {
    const experts = expertKeys.map((key) => json[key]).find((count) => typeof count === "number" && count > 0)
    const mixture = experts === undefined ? "" : `, a mixture of ${experts} experts,`
    throw fail(`the architecture ${describe(first ?? json.model_type)}${mixture} is not supported; ${supported}`)
  }
  const type = json.model_type ?? families[found].modelType
  if (type !== families[found].modelType) throw fail(`model_type ${describe(type)} does not fit ${modelName(found)}`)
  return found
}

function refuseUnsupported(fields: ConfigFields, architecture: ModelConfig["architecture"], family: Family): void {
  const { json, fail } = fields
  if ((json.quantization_config ?? undefined) !== undefined) {
    throw fail("the model is quantized (quantization_config), and quantized weights cannot be trained")
  }
  const { key, names } = family.activation ?? silu
  const activation = json[key] ?? names[0]
  if (!names.some((name) => name === activation))
    throw fail(`${key} is ${describe(activation)}; only "${names[0]}" is supported`)
  if (fields.flag("mlp_bias")) throw fail("mlp_bias is true; biases in the feed-forward network are not supported")
  // attention_bias would add a bias to the output projection too. Qwen2 always has its three biases, whatever the field says.
  if (!family.form?.queryKeyValueBias && fields.flag("attention_bias")) {
    throw fail(`attention_bias is true; ${architecture} models with it are not supported`)
  }
}
