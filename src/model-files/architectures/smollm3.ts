import { type ConfigFields, describe } from "../config-fields.ts"
import type { Family } from "../family.ts"
import { layerTypes, typesOf, windowSize, windowsOf, withoutWindows } from "../layer-types.ts"

/** Period of the layers that are not rotated, where a file does not list them. */
const period = 4

/** SmolLM3: every fourth layer is not rotated, and has the windows where there are some. */
export const smolLm3: Family = {
  modelType: "smollm3",
  defaults: {
    vocabularySize: 128256,
    hiddenSize: 2048,
    intermediateSize: 11008,
    layers: 36,
    heads: 16,
    keyValueHeads: 4,
    maxPositions: 32768,
    tieEmbeddings: true,
  },
  ropeTheta: 2_000_000,
  layers: {
    windows(fields, layers) {
      if (!fields.flag("use_sliding_window")) return withoutWindows(fields, layers)
      const types = layerTypes(fields, layers)
      const window = fields.json.sliding_window === undefined ? 0 : windowSize(fields)
      if (types) return windowsOf(types, window, fields)
      return rotatedLayers(fields, layers).map((isRotated) => (isRotated ? 0 : window))
    },
    rotated: rotatedLayers,
    write: (table, window) => ({
      ...(window > 0 && { use_sliding_window: true, sliding_window: window, layer_types: typesOf(table) }),
      no_rope_layers: table.map(({ rope }) => (rope === "none" ? 0 : 1)),
    }),
  },
  gguf: { name: "smollm3", interleaved: true, notRotatedEvery: period },
}

/** Whether each layer is rotated. */
function rotatedLayers(fields: ConfigFields, layers: number): boolean[] {
  const { json, fail } = fields
  const given = json.no_rope_layers ?? undefined
  if (given === undefined) {
    const interval = fields.size("no_rope_layer_interval", 2 ** 30, period)
    return Array.from({ length: layers }, (_, i) => (i + 1) % interval !== 0)
  }
  if (!Array.isArray(given) || !given.every((one) => one === 0 || one === 1))
    throw fail(`no_rope_layers is ${describe(given)}; it must be a list of 0 and 1`)
  if (given.length < layers)
    throw fail(`no_rope_layers names ${given.length} layers, but num_hidden_layers is ${layers}`)
  return given.slice(0, layers).map((one) => one === 1)
}
