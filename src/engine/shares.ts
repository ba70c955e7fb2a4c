import type { Aggregation } from "./engine.ts"

/**
 * What each token counts in the batch, [tokens]: the batch's loss is Σ share · loss of the token. For `token-mean` these are
 * 1 / tokens, for `token-sum` 1, for `sequence-mean-token-sum` 1 / sequences, for `sequence-mean-token-mean`
 * 1 / (sequences · tokens of the sequence), for `sequence-mean-fixed-length` 1 / (sequences · fixedLength).
 *
 * @param offsets sequence s holds tokens offsets[s] … offsets[s + 1] - 1, [sequences + 1]
 */
export function shares(aggregation: Aggregation, offsets: Int32Array, fixedLength = 1): Float64Array {
  const tokens = offsets.at(-1) ?? 0
  const result = new Float64Array(tokens)
  if (aggregation === "token-mean") return result.fill(1 / tokens)
  if (aggregation === "token-sum") return result.fill(1)
  const sequences = countSequences(offsets)
  if (aggregation === "sequence-mean-token-sum") return result.fill(1 / sequences)
  if (aggregation === "sequence-mean-fixed-length") return result.fill(1 / (sequences * fixedLength))
  for (let s = 0; s + 1 < offsets.length; s++) {
    const [start, end] = [offsets[s]!, offsets[s + 1]!]
    result.fill(1 / (sequences * (end - start)), start, end)
  }
  return result
}

/** Those without a token are none. */
function countSequences(offsets: Int32Array): number {
  let count = 0
  for (let s = 0; s + 1 < offsets.length; s++) if (offsets[s + 1]! > offsets[s]!) count++
  return count
}
