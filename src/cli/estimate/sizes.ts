import type { ModelConfig } from "../../model-files/model-config.ts"
import { countAdapter, countParameters, projectionShapes } from "../../model-files/model-tensors.ts"

/** Weights by how they are used. */
export interface ModelSizes {
  readonly parameters: number
  /** In the multiplications of the layers. */
  readonly body: number
  readonly head: number
  readonly adapter: number
  /** Of keys and values, one token. */
  readonly cacheNumbersPerToken: number
}

export function modelSizes(config: ModelConfig, loraRank: number): ModelSizes {
  return {
    parameters: countParameters(config),
    body: projectionShapes(config).reduce((sum, [rows, columns]) => sum + rows * columns, 0),
    head: config.vocabularySize * config.hiddenSize,
    adapter: countAdapter(config, loraRank),
    cacheNumbersPerToken: 2 * config.layers * config.keyValueHeads * config.headSize,
  }
}
