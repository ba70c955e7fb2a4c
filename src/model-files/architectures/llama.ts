import type { Family } from "../family.ts"
import { withoutWindows } from "../layer-types.ts"

export const llama: Family = {
  modelType: "llama",
  defaults: { vocabularySize: 32000, intermediateSize: 11008, maxPositions: 2048 },
  layers: { windows: withoutWindows, write: (_, window) => (window === 0 ? {} : undefined) },
  gguf: { name: "llama", interleaved: true },
}
