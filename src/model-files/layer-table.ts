import { GigpoError } from "../util/errors.ts"
import { type ConfigFields, type ConfigJson, describe } from "./config-fields.ts"
import { families } from "./families.ts"
import type { ModelConfig } from "./model-config.ts"

/** What differs between the layers of a model. */
export interface LayerKind {
  /** Tokens of its sequence that a token sees, itself and those before it; 0: all. */
  readonly window: number
  /** Number of the rotary table: 0, or 1 in layers with windows that have another; "none": queries and keys are not rotated. */
  readonly rope: number | "none"
}

type Table = readonly LayerKind[] | undefined

/**
 * Reads which layers have a sliding window, and which are not rotated. Undefined where none differs from the usual. Fields that transformers
 * would contradict itself with are refused.
 */
export function parseLayerTable(
  fields: ConfigFields,
  architecture: ModelConfig["architecture"],
  layers: number,
): Table {
  const { json, fail } = fields
  if (architecture !== "SmolLM3" && (json.no_rope_layers ?? undefined) !== undefined)
    throw fail("no_rope_layers is an object or a list, which changes what the model computes and is not supported")
  const rotated = architecture === "SmolLM3" ? rotatedLayers(fields, layers) : Array<boolean>(layers).fill(true)
  const windows = windowsOf(fields, architecture, rotated)
  const local = families[architecture].localRopeTheta === undefined ? 0 : 1
  const table = windows.map(
    (window, i): LayerKind => ({ window, rope: rotated[i] ? (window > 0 ? local : 0) : "none" }),
  )
  return table.every(({ window, rope }) => window === 0 && rope === 0) ? undefined : table
}

/** Window of each layer. */
function windowsOf(
  fields: ConfigFields,
  architecture: ModelConfig["architecture"],
  rotated: readonly boolean[],
): number[] {
  const { json, fail } = fields
  const layers = rotated.length
  const types = layerTypes(fields, layers)
  const without = Array<number>(layers).fill(0)
  if (architecture === "Gemma3") return gemmaWindows(fields, types ?? everySixth(fields, layers))
  if (architecture === "Llama" || (architecture !== "Mistral" && !fields.flag("use_sliding_window"))) {
    if (fields.flag("use_sliding_window") || types?.includes("sliding_attention"))
      throw fail("sliding-window attention is in use and not supported without use_sliding_window of Qwen or SmolLM3")
    return without
  }
  // Missing, it has the default of transformers; null is no window.
  const absent = json.sliding_window === null || (json.sliding_window === undefined && architecture === "SmolLM3")
  const window = absent ? 0 : fields.size("sliding_window", 2 ** 30, 4096)
  if (architecture === "Mistral") {
    if (types?.some((type) => (type === "sliding_attention") !== window > 0))
      throw fail("layer_types does not fit sliding_window; windows of some layers of Mistral are not supported")
    return without.fill(window)
  }
  if (window === 0 && types?.includes("sliding_attention"))
    throw fail("layer_types has sliding_attention, but sliding_window is null")
  if (types) return types.map((type) => (type === "sliding_attention" ? window : 0))
  if (architecture === "SmolLM3") return rotated.map((has) => (has ? 0 : window))
  // 0 is a number of layers too: all have windows then.
  const before = json.max_window_layers === 0 ? 0 : fields.size("max_window_layers", 2 ** 30, 28)
  return without.map((_, i) => (i >= before ? window : 0))
}

function gemmaWindows({ json, fail, size }: ConfigFields, types: readonly string[]): number[] {
  if (!types.includes("sliding_attention")) return types.map(() => 0)
  if (json.sliding_window === null) throw fail("layer_types has sliding_attention, but sliding_window is null")
  const window = size("sliding_window", 2 ** 30, 4096)
  return types.map((type) => (type === "sliding_attention" ? window : 0))
}

/** Kinds of the layers of Gemma 3 without a list: every sixth one, or one of `sliding_window_pattern`, sees all tokens. */
function everySixth(fields: ConfigFields, layers: number): string[] {
  const period = fields.size("sliding_window_pattern", 2 ** 30, 6)
  return Array.from({ length: layers }, (_, i) => ((i + 1) % period === 0 ? "full_attention" : "sliding_attention"))
}

function layerTypes({ json, fail }: ConfigFields, layers: number): readonly string[] | undefined {
  const types = json.layer_types ?? undefined
  if (types === undefined) return undefined
  const known = Array.isArray(types) && types.every((type) => type === "full_attention" || type === "sliding_attention")
  if (!known)
    throw fail("layer_types has layers that are neither full_attention nor sliding_attention: they are not supported")
  if (types.length !== layers)
    throw fail(`layer_types names ${types.length} layers, but num_hidden_layers is ${layers}`)
  return types
}

/** Whether each layer of a SmolLM3 model is rotated: without a list, all but every fourth. */
function rotatedLayers(fields: ConfigFields, layers: number): boolean[] {
  const { json, fail } = fields
  const given = json.no_rope_layers ?? undefined
  if (given === undefined) {
    const interval = fields.size("no_rope_layer_interval", 2 ** 30, 4)
    return Array.from({ length: layers }, (_, i) => (i + 1) % interval !== 0)
  }
  if (!Array.isArray(given) || !given.every((one) => one === 0 || one === 1))
    throw fail(`no_rope_layers is ${describe(given)}; it must be a list of 0 and 1`)
  if (given.length < layers)
    throw fail(`no_rope_layers names ${given.length} layers, but num_hidden_layers is ${layers}`)
  return given.slice(0, layers).map((one) => one === 1)
}

/** The table of a model, with an entry for each layer. */
export function layerTable({ layerTable: table, layers }: ModelConfig): readonly LayerKind[] {
  return table ?? Array<LayerKind>(layers).fill({ window: 0, rope: 0 })
}

/**
 * Returns a table as fields of config.json, in the words of its architecture.
 *
 * @throws GigpoError `BAD_ARGUMENT` if a handwritten table has no names there.
 */
export function layerTableJson(config: ModelConfig): ConfigJson {
  const { architecture } = config
  const table = layerTable(config)
  const windows = table.map(({ window }) => window)
  const window = Math.max(...windows)
  const plain = window === 0 && table.every(({ rope }) => rope === 0)
  const local = families[architecture].localRopeTheta === undefined ? 0 : 1
  const fits =
    windows.every((one) => one === 0 || one === window) &&
    (architecture === "SmolLM3" || table.every(({ rope, window }) => rope === (window > 0 ? local : 0))) &&
    (architecture !== "Mistral" || windows.every((one) => one === window))
  if (!fits || (architecture === "Llama" && !plain))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `layerTable has layers that no ${architecture} model in Hugging Face's format has.`,
    )
  if (architecture === "Mistral") return { sliding_window: window || null }
  const types = windows.map((one) => (one > 0 ? "sliding_attention" : "full_attention"))
  if (architecture === "Gemma3") return { ...(window > 0 && { sliding_window: window }), layer_types: types }
  return {
    ...(window > 0 && { use_sliding_window: true, sliding_window: window, layer_types: types }),
    ...(architecture === "SmolLM3" && { no_rope_layers: table.map(({ rope }) => (rope === "none" ? 0 : 1)) }),
  }
}
