import type { Aggregation } from "../engine/engine.ts"

/** What a batch counts. Sequences without a token are none. */
export interface BatchCounts {
  readonly tokens: number
  readonly sequences: number
}

/**
 * What each token counts in the batch, [tokens]: the batch's loss is Σ share · loss of the token. For `token-mean` these are
 * 1 / tokens, for `sequence-mean-token-sum` 1 / sequences, for `sequence-mean-token-mean` 1 / (sequences · tokens of the sequence).
 *
 * @param offsets sequence s holds tokens offsets[s] … offsets[s + 1] - 1, [sequences + 1]
 * @param whole counts of the batch, where these tokens are only what is computed of it. Default: what `offsets` say.
 */
export function shares(
  aggregation: Aggregation,
  offsets: Int32Array,
  whole: BatchCounts = { tokens: offsets.at(-1) ?? 0, sequences: countSequences(offsets) },
): Float64Array {
  const result = new Float64Array(offsets.at(-1) ?? 0)
  if (aggregation === "token-mean") return result.fill(1 / whole.tokens)
  if (aggregation === "sequence-mean-token-sum") return result.fill(1 / whole.sequences)
  for (let s = 0; s + 1 < offsets.length; s++) {
    const [start, end] = [offsets[s]!, offsets[s + 1]!]
    result.fill(1 / (whole.sequences * (end - start)), start, end)
  }
  return result
}

function countSequences(offsets: Int32Array): number {
  let count = 0
  for (let s = 0; s + 1 < offsets.length; s++) if (offsets[s + 1]! > offsets[s]!) count++
  return count
}
