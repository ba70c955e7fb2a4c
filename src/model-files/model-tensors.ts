import { GigpoError } from "../util/errors.ts"
import type { AdapterLayout } from "./adapter-layout.ts"
import type { Head, ModelConfig } from "./model-config.ts"
import type { TensorFiles } from "./safetensors.ts"
import { quote } from "./strict-json.ts"

/** Every weight of the model under its Hugging Face name, in the order of the computation. Matrices are [out, in]. */
export function tensorShapes(config: ModelConfig, head: Head = "language"): Map<string, readonly number[]> {
  const { vocabularySize, hiddenSize, intermediateSize, headSize } = config
  const queryColumns = config.heads * headSize
  const keyValueColumns = config.keyValueHeads * headSize
  const shapes = new Map<string, readonly number[]>([["model.embed_tokens.weight", [vocabularySize, hiddenSize]]])
  for (let layer = 0; layer < config.layers; layer++) {
    const set = (name: string, ...shape: number[]) => shapes.set(`model.layers.${layer}.${name}`, shape)
    set("input_layernorm.weight", hiddenSize)
    for (const [projection, columns] of [
      ["q_proj", queryColumns],
      ["k_proj", keyValueColumns],
      ["v_proj", keyValueColumns],
    ] as const) {
      set(`self_attn.${projection}.weight`, columns, hiddenSize)
      if (config.queryKeyValueBias) set(`self_attn.${projection}.bias`, columns)
    }
    if (config.queryKeyNorm) {
      set("self_attn.q_norm.weight", headSize)
      set("self_attn.k_norm.weight", headSize)
    }
    set("self_attn.o_proj.weight", hiddenSize, queryColumns)
    set("post_attention_layernorm.weight", hiddenSize)
    set("mlp.gate_proj.weight", intermediateSize, hiddenSize)
    set("mlp.up_proj.weight", intermediateSize, hiddenSize)
    set("mlp.down_proj.weight", hiddenSize, intermediateSize)
  }
  shapes.set("model.norm.weight", [hiddenSize])
  if (head === "value") shapes.set("score.weight", [1, hiddenSize])
  else if (!config.tieEmbeddings) shapes.set("lm_head.weight", [vocabularySize, hiddenSize])
  return shapes
}

/** Number of weights; tied embeddings count once. */
export function countParameters(config: ModelConfig, head: Head = "language"): number {
  return [...tensorShapes(config, head).values()].reduce((sum, shape) => sum + shape.reduce((a, b) => a * b, 1), 0)
}

/** The matrices that may have an adapter beside them, [out, in] each. */
export function projectionShapes(config: ModelConfig): (readonly [number, number])[] {
  const projections = [...tensorShapes(config)].filter(([name]) => name.endsWith("_proj.weight"))
  return projections.map(([, [out, into]]) => [out!, into!])
}

/** Number of weights of an adapter: pairs of narrow matrices, and what is trained whole, a critic's head too. */
export function countAdapter(config: ModelConfig, adapter: AdapterLayout, head: Head = "language"): number {
  const pairs = projectionShapes(config).reduce((sum, [out, into], i) => sum + adapter.ranks[i]! * (out + into), 0)
  const shapes = tensorShapes({ ...config, tieEmbeddings: false }, head)
  const sizeOf = (name: string) => (shapes.get(name) ?? [0]).reduce((a, b) => a * b, 1)
  const whole = adapter.whole.reduce((sum, name) => sum + sizeOf(name), 0)
  return pairs + whole + (head === "value" ? config.hiddenSize : 0)
}

/**
 * Checks names, shapes and dtypes of a model's files against its configuration, from the headers alone. Two kinds of
 * tensors may be there and are not read: rotary frequencies (they follow from the configuration) and a copy of the
 * tied embedding.
 *
 * @throws GigpoError `BAD_MODEL` that names the tensors that are missing, unknown or misshapen.
 */
export function checkTensors(
  config: ModelConfig,
  files: Pick<TensorFiles, "names" | "info">,
  head: Head = "language",
): void {
  const shapes = tensorShapes(config, head)
  const names = new Set(files.names)
  // An untied head is among the shapes, so it never comes to this.
  const ignored = (name: string): boolean => name.endsWith(".rotary_emb.inv_freq") || name === "lm_head.weight"

  const missing = [...shapes.keys()].filter((name) => !names.has(name))
  if (missing.length > 0) throw misfit(`The model's files lack ${list(missing)}`)
  const unknown = [...names].filter((name) => !shapes.has(name) && !ignored(name))
  if (unknown.length > 0) throw misfit(`The model's files hold ${list(unknown)}, which config.json does not explain`)
  for (const [name, wanted] of shapes) {
    const { shape } = files.info(name)
    if (shape.length === wanted.length && wanted.every((size, i) => size === shape[i])) continue
    const found = shape.length > 8 ? `${shape.length} dimensions` : `[${shape.join(", ")}]`
    throw misfit(`Tensor ${quote(name)} has shape ${found}, but config.json asks for [${wanted.join(", ")}]`)
  }
}

function misfit(what: string): GigpoError {
  return new GigpoError("BAD_MODEL", `${what}. Use the config.json and the files of one and the same model.`)
}

function list(names: readonly string[]): string {
  const rest = names.length > 5 ? ` and ${names.length - 5} more` : ""
  return `${names.length === 1 ? "tensor" : "tensors"} ${names.slice(0, 5).map(quote).join(", ")}${rest}`
}
