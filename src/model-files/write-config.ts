import { join } from "node:path"
import { replaceFile } from "../files/atomic-file.ts"
import { memberTexts, textOf } from "../json/text.ts"
import type { ConfigJson } from "./config-fields.ts"
import { families, silu } from "./families.ts"
import type { Family } from "./family.ts"
import { layerTableJson } from "./layer-table.ts"
import type { Head, ModelConfig } from "./model-config.ts"
import { writeFields } from "./model-fields.ts"
import { ropeScalingJson } from "./rotary-config.ts"

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
  const family: Family = families[architecture]
  const { classifier = `${architecture}ForSequenceClassification`, activation = silu } = family
  const { head_dim: written, ...fields } = writeFields(config)
  const localRotary = config.otherRotary?.[0]
  return {
    ...kept,
    ...(isClassifier && classifierFields),
    architectures: [isClassifier ? classifier : `${architecture}ForCausalLM`],
    model_type: family.modelType,
    ...fields,
    ...((!family.withoutHeadSize || headSize * heads !== hiddenSize) && { head_dim: written }),
    [activation.key]: activation.names[0],
    rope_theta: config.ropeTheta,
    ...(localRotary && { rope_local_base_freq: localRotary.ropeTheta }),
    ...(scaling && { rope_scaling: ropeScalingJson(scaling) }),
    ...layerTableJson(config),
    // The names of this field in transformers 4 and 5.
    torch_dtype: dtype,
    dtype,
  }
}
