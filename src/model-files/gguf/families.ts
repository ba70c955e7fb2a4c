import { architectures, families } from "../families.ts"
import type { Family } from "../family.ts"
import type { ModelConfig } from "../model-config.ts"
import type { GgufConventions } from "./conventions.ts"
import type { GgufValue } from "./metadata.ts"

/** Architecture of a GGUF file. */
export interface GgufFamily extends GgufConventions {
  readonly architecture: ModelConfig["architecture"]
  readonly modelType: string
}

/** Architectures that are read, by `general.architecture`. */
export const ggufFamilies: ReadonlyMap<string, GgufFamily> = new Map(
  architectures.flatMap((architecture) => {
    const { gguf, modelType }: Family = families[architecture]
    return gguf ? [[gguf.name, { architecture, modelType, ...gguf }] as const] : []
  }),
)

/** Returns the conventions of the architecture that a file names. */
export function ggufFamily(metadata: ReadonlyMap<string, GgufValue>): GgufFamily | undefined {
  const name = metadata.get("general.architecture")
  return typeof name === "string" ? ggufFamilies.get(name) : undefined
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

const layerTensorsOf = ({ layerTensors: own }: GgufConventions): Readonly<Record<string, string>> => ({
  ...layerTensors,
  ...own,
})

/** Returns the Hugging Face name of a GGUF tensor; names without a counterpart are returned unchanged. */
export function hubName(name: string, family: GgufConventions): string {
  const layer = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name)
  const top = /^(\w+)\.(weight|bias)$/.exec(name)
  const inLayer = layer && own(layerTensorsOf(family), layer[2]!)
  if (layer && inLayer) return `model.layers.${layer[1]}.${inLayer}.${layer[3]}`
  const inModel = top && own(modelTensors, top[1]!)
  return top && inModel ? `${inModel}.${top[2]}` : name
}

/** Returns the GGUF name of a tensor with a Hugging Face name. */
export function ggufName(name: string, family: GgufConventions): string {
  const layer = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(name)
  const inLayer = layer && Object.entries(layerTensorsOf(family)).find(([, hub]) => hub === layer[2])
  if (inLayer) return `blk.${layer[1]}.${inLayer[0]}.${layer[3]}`
  const [, module, kind] = /^(.+)\.(weight|bias)$/.exec(name)!
  return `${topInGguf.get(module!)}.${kind}`
}

function own(table: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined
}
