import type { LayerKind } from "../native/model.ts"
import type { ConfigFields } from "./config-fields.ts"

/** Entry of `layer_types` in config.json. */
export type LayerType = "full_attention" | "sliding_attention"

/** Reads `layer_types`, an entry for each layer; undefined if it is missing. Throws `BAD_MODEL`. */
export function layerTypes({ json, fail }: ConfigFields, layers: number): readonly LayerType[] | undefined {
  const types = json.layer_types ?? undefined
  if (types === undefined) return undefined
  const known = Array.isArray(types) && types.every((type) => type === "full_attention" || type === "sliding_attention")
  if (!known)
    throw fail("layer_types has layers that are neither full_attention nor sliding_attention: they are not supported")
  if (types.length !== layers)
    throw fail(`layer_types names ${types.length} layers, but num_hidden_layers is ${layers}`)
  return types
}

/** Returns the entries of `layer_types` for a table. */
export const typesOf = (table: readonly LayerKind[]): readonly LayerType[] =>
  table.map(({ window }) => (window > 0 ? "sliding_attention" : "full_attention"))

/** Reads `sliding_window`, whose default in transformers is 4096; null is no window, 0. Throws `BAD_MODEL`. */
export const windowSize = ({ json, size }: ConfigFields): number =>
  json.sliding_window === null ? 0 : size("sliding_window", 2 ** 30, 4096)

/** Returns the window of each layer by its type. Throws `BAD_MODEL` if layers have windows, and the window is 0. */
export function windowsOf(types: readonly LayerType[], window: number, { fail }: ConfigFields): number[] {
  if (window === 0 && types.includes("sliding_attention"))
    throw fail("layer_types has sliding_attention, but sliding_window is null")
  return types.map((type) => (type === "sliding_attention" ? window : 0))
}

/** Returns the windows of layers without windows. Throws `BAD_MODEL` if the file turns windows on. */
export function withoutWindows(fields: ConfigFields, layers: number): number[] {
  const types = layerTypes(fields, layers)
  if (fields.flag("use_sliding_window") || types?.includes("sliding_attention"))
    throw fields.fail(
      "sliding-window attention is in use and not supported without use_sliding_window of Qwen or SmolLM3",
    )
  return Array<number>(layers).fill(0)
}
