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
export function diskBytes(config: ModelConfig, head: Head, loraRank: number): DiskBytes {
  const weights = countParameters(config, head)
  const besideAdapter = head === "value" ? config.hiddenSize : 0 // the critic's head is trained with it
  const trained = loraRank > 0 ? countAdapter(config, loraRank) + besideAdapter : weights
  return { model: 4 * weights, checkpoint: 3 * 4 * trained }
}
