import type { Family } from "../family.ts"
import { layerTypes, windowSize } from "../layer-types.ts"

/** Mistral: all layers have the same window, or none has one. */
export const mistral: Family = {
  modelType: "mistral",
  defaults: { vocabularySize: 32000, intermediateSize: 14336, maxPositions: 131072, keyValueHeads: 8 },
  layers: {
    windows(fields, layers) {
      const types = layerTypes(fields, layers)
      const window = windowSize(fields)
      if (types?.some((type) => (type === "sliding_attention") !== window > 0))
        throw fields.fail(
          "layer_types does not fit sliding_window; windows of some layers of Mistral are not supported",
        )
      return Array<number>(layers).fill(window)
    },
    write: (table, window) =>
      table.every((kind) => kind.window === window) ? { sliding_window: window || null } : undefined,
  },
  exportedAs: "Llama",
}
