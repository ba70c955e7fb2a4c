import { type AdapterLayout, unties } from "../../model-files/adapter-layout.ts"
import type { Head, ModelConfig } from "../../model-files/model-config.ts"
import { countAdapter, countParameters } from "../../model-files/model-tensors.ts"

/** Size of saved files in bytes. */
export interface DiskBytes {
  /** Model as `save` writes it. */
  readonly model: number
  /** Trained weights with both moments of AdamW. */
  readonly checkpoint: number
}

/**
 * Returns the size on disk of a policy (`head` "language") or critic ("value"), without headers and copied files. Files are in
 * float32, whatever the precision of the computation.
 */
export function diskBytes(config: ModelConfig, head: Head, adapter: AdapterLayout | undefined): DiskBytes {
  const merged = { ...config, tieEmbeddings: config.tieEmbeddings && !(adapter && unties(config, adapter)) }
  const weights = countParameters(merged, head)
  const trained = adapter ? countAdapter(config, adapter, head) : weights
  const twice = adapter?.tied && head === "language" ? config.vocabularySize * config.hiddenSize : 0 // PEFT stores a tied head twice
  return { model: 4 * weights, checkpoint: 4 * (3 * trained + twice) }
}
