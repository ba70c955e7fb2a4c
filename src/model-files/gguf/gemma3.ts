import { GigpoError } from "../../util/errors.ts"
import type { ConfigJson } from "../config-fields.ts"
import type { ModelConfig } from "../model-config.ts"
import type { GgufConventions, GgufKeys } from "./conventions.ts"
import type { TypedValue } from "./write.ts"

/** Rotary base of layers with windows, and period of the layers without, where a file does not state them, as in llama.cpp. */
const localBase = 10_000
const period = 6

/**
 * Gemma 3 in GGUF files: norm weights are stored as 1 + w; the norm before the feed-forward network has the name that the norm after
 * attention has in other architectures.
 */
export const gemma3Gguf: GgufConventions = {
  name: "gemma3",
  interleaved: false,
  normOffset: 1,
  endOfTurn: "<end_of_turn>",
  layerTensors: {
    post_attention_norm: "post_attention_layernorm",
    ffn_norm: "pre_feedforward_layernorm",
    post_ffw_norm: "post_feedforward_layernorm",
  },
  keys: [
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "rope.freq_base_swa",
    "final_logit_softcapping",
    "attn_logit_softcapping",
  ],
  ropeTheta: 1_000_000,
  config: gemma3Config,
  metadata: gemma3Metadata,
}

/** Returns the fields of config.json by which Gemma 3 differs. */
function gemma3Config({ number, get, fail }: GgufKeys): ConfigJson {
  const [layers, hidden, heads] = ["block_count", "embedding_length", "attention.head_count"].map(number)
  const scaling = get("rope.scaling.type") ?? "none"
  // llama.cpp would scale the layers with windows too.
  if (scaling === "yarn") throw fail("it has the rope scaling yarn, which is not supported for gemma3")
  const window = number("attention.sliding_window") ?? 0
  const softcap = (key: string) => ({ [key]: number(key) || undefined })
  return {
    hidden_act: undefined,
    hidden_activation: "gelu_pytorch_tanh",
    query_pre_attn_scalar: queryScalar({ layers, hidden, heads, headSize: number("attention.key_length") }),
    rope_local_base_freq: number("rope.freq_base_swa") ?? localBase,
    ...(window > 0 && { sliding_window: window }),
    layer_types: kindsOf(get("attention.sliding_window_pattern") ?? period, window > 0, layers ?? 0, fail),
    ...softcap("final_logit_softcapping"),
    ...softcap("attn_logit_softcapping"),
  }
}

/** Returns the kinds of the layers: a file has a period, or a list with true for each layer with a window. */
function kindsOf(pattern: unknown, windows: boolean, layers: number, fail: GgufKeys["fail"]): string[] {
  const isList = Array.isArray(pattern) && pattern.length === layers
  if (!isList && !(typeof pattern === "number" && Number.isInteger(pattern) && pattern >= 1))
    throw fail("attention.sliding_window_pattern is neither a period nor a list with an entry for each layer")
  return Array.from({ length: Math.min(layers, 1000) }, (_, i) => {
    const local = isList ? pattern[i] === true : (i + 1) % (pattern as number) !== 0
    return windows && local ? "sliding_attention" : "full_attention"
  })
}

/** query_pre_attn_scalar, which no file states: llama.cpp knows the model with 62 layers (27B), whose number is not the head size. */
function queryScalar(model: Readonly<Record<"layers" | "hidden" | "heads" | "headSize", number | undefined>>) {
  const { layers, hidden = 0, heads = 1, headSize } = model
  return layers === 62 ? Math.floor(hidden / heads) : headSize
}

/**
 * Returns the metadata by which Gemma 3 differs.
 *
 * @throws GigpoError `BAD_MODEL` if llama.cpp would compute the model otherwise.
 */
function gemma3Metadata(config: ModelConfig): Readonly<Record<string, TypedValue>> {
  const refuse = (what: string) => new GigpoError("BAD_MODEL", `Gemma3 models with ${what} cannot be exported as GGUF.`)
  const { layers, hiddenSize: hidden, heads, headSize } = config
  if (config.ropeScaling) throw refuse("rope scaling")
  if (config.queryScalar !== queryScalar({ layers, hidden, heads, headSize }))
    throw refuse(`query_pre_attn_scalar ${config.queryScalar}`)
  const windows = Array.from({ length: layers }, (_, i) => config.layerTable?.[i]?.window ?? 0)
  const window = Math.max(...windows)
  const usual = windows.every((one, i) => one > 0 === (window > 0 && (i + 1) % period !== 0))
  if (!usual) throw refuse("other layers without windows than every sixth")
  return {
    ...(window > 0 && { "attention.sliding_window": { type: "uint32", value: window } }),
    "rope.freq_base_swa": { type: "float32", value: config.otherRotary?.[0]?.ropeTheta ?? localBase },
  }
}
