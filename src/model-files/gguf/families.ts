import type { GigpoError } from "../../util/errors.ts"
import type { ConfigJson } from "../config-fields.ts"
import type { ModelConfig } from "../model-config.ts"
import { gemma3 } from "./gemma3.ts"
import type { GgufValue } from "./metadata.ts"
import type { TypedValue } from "./write.ts"

/** Access to the metadata of an architecture, by keys without its name. */
export interface GgufKeys {
  /** A numeric key. Throws `BAD_MODEL` for another type, and for an array of different numbers. */
  number(key: string): number | undefined
  get(key: string): GgufValue | undefined
  /** Creates a `BAD_MODEL` error that names the file. */
  fail(what: string): GigpoError
}

/** Conventions of one architecture in GGUF files. */
export interface GgufFamily {
  readonly architecture: ModelConfig["architecture"]
  readonly modelType: string
  /**
   * Whether the rows of the query and key projections are stored for rotary positions on neighboring pairs. Hugging Face pairs
   * column i with column i + size / 2 of a head; llama.cpp's converter interleaves the two halves for Llama and what is made like it.
   */
  readonly interleaved: boolean
  /** Number that is added to the weights of norms in a file. */
  readonly normOffset?: 1
  /** Tensors of a layer with other names than usual. */
  readonly layerTensors?: Readonly<Record<string, string>>
  /** Keys that only this architecture has. */
  readonly keys?: readonly string[]
  /** Rotary base where a file does not state it. Default 10,000. */
  readonly ropeTheta?: number
  /** Token that ends a turn, where a file does not state it. */
  readonly endOfTurn?: string
  /** Returns further fields of config.json; undefined removes one. */
  config?(keys: GgufKeys): ConfigJson
  /** Returns further metadata. Throws `BAD_MODEL` if llama.cpp would compute the model otherwise. */
  metadata?(config: ModelConfig): Readonly<Record<string, TypedValue>>
}

/** Architectures that are read, by `general.architecture`. */
export const ggufFamilies: Readonly<Record<string, GgufFamily>> = {
  llama: { architecture: "Llama", modelType: "llama", interleaved: true },
  qwen2: { architecture: "Qwen2", modelType: "qwen2", interleaved: false },
  qwen3: { architecture: "Qwen3", modelType: "qwen3", interleaved: false },
  smollm3: { architecture: "SmolLM3", modelType: "smollm3", interleaved: true },
  gemma3,
}

/** Returns the conventions of the architecture that a file names. */
export function ggufFamily(metadata: ReadonlyMap<string, GgufValue>): GgufFamily | undefined {
  const name = metadata.get("general.architecture")
  return typeof name === "string" && Object.hasOwn(ggufFamilies, name) ? ggufFamilies[name] : undefined
}

/** Whether a tensor with a Hugging Face name is the weight of a norm. */
export const isNorm = (name: string): boolean => name.endsWith("norm.weight")

const layerTensors = {
  attn_norm: "input_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_output: "self_attn.o_proj",
  attn_q_norm: "self_attn.q_norm",
  attn_k_norm: "self_attn.k_norm",
  ffn_norm: "post_attention_layernorm",
  ffn_gate: "mlp.gate_proj",
  ffn_up: "mlp.up_proj",
  ffn_down: "mlp.down_proj",
} as const

const modelTensors = { token_embd: "model.embed_tokens", output_norm: "model.norm", output: "lm_head" } as const

/** Factors of the rotary frequencies; part of the configuration in Hugging Face's layout. */
export const ropeFactors = "rope_freqs.weight"

const topInGguf = new Map<string, string>(Object.entries(modelTensors).map(([gguf, hub]) => [hub, gguf]))

const layerTensorsOf = ({ layerTensors: own }: GgufFamily): Readonly<Record<string, string>> => ({
  ...layerTensors,
  ...own,
})

/** Returns the Hugging Face name of a GGUF tensor; names without a counterpart are returned unchanged. */
export function hubName(name: string, family: GgufFamily): string {
  const layer = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name)
  const top = /^(\w+)\.(weight|bias)$/.exec(name)
  const inLayer = layer && own(layerTensorsOf(family), layer[2]!)
  if (layer && inLayer) return `model.layers.${layer[1]}.${inLayer}.${layer[3]}`
  const inModel = top && own(modelTensors, top[1]!)
  return top && inModel ? `${inModel}.${top[2]}` : name
}

/** Returns the GGUF name of a tensor with a Hugging Face name. */
export function ggufName(name: string, family: GgufFamily): string {
  const layer = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(name)
  const inLayer = layer && Object.entries(layerTensorsOf(family)).find(([, hub]) => hub === layer[2])
  if (inLayer) return `blk.${layer[1]}.${inLayer[0]}.${layer[3]}`
  const [, module, kind] = /^(.+)\.(weight|bias)$/.exec(name)!
  return `${topInGguf.get(module!)}.${kind}`
}

function own(table: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined
}
