import { type AdapterLayout, unties } from "../../model-files/adapter-layout.ts"
import type { Head, ModelConfig } from "../../model-files/model-config.ts"
import { countAdapter, countParameters } from "../../model-files/model-tensors.ts"

export interface DiskBytes {
  /** The whole model, as `save` writes it. */
  readonly model: number
  /** What is trained, with AdamW's two moments of it. */
  readonly checkpoint: number
}

/**
 * What the folders of a policy (`head` "language") or of its critic ("value") take on the disk, but for the headers of their files and
 * what is copied beside them. Files are in float32, whatever is computed with.
 */
export function diskBytes(config: ModelConfig, head: Head, adapter: AdapterLayout | undefined): DiskBytes {
  const merged = { ...config, tieEmbeddings: config.tieEmbeddings && !(adapter && unties(config, adapter)) }
  const weights = countParameters(merged, head)
  const trained = adapter ? countAdapter(config, adapter, head) : weights
  const twice = adapter?.tied && head === "language" ? config.vocabularySize * config.hiddenSize : 0 // as PEFT stores it
  return { model: 4 * weights, checkpoint: 4 * (3 * trained + twice) }
}
