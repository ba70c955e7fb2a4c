import type { Aggregation } from "./engine.ts"

/**
 * Returns the share of each token in the loss of the batch, [tokens]: the loss is Σ share · loss of the token. Shares are
 * 1 / tokens for `token-mean`, 1 for `token-sum`, 1 / sequences for `sequence-mean-token-sum`,
 * 1 / (sequences · tokens of the sequence) for `sequence-mean-token-mean`, and 1 / (sequences · fixedLength) for
 * `sequence-mean-fixed-length`. Sequences without tokens are not counted.
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

/** Returns the number of sequences with at least one token. */
function countSequences(offsets: Int32Array): number {
  let count = 0
  for (let s = 0; s + 1 < offsets.length; s++) if (offsets[s + 1]! > offsets[s]!) count++
  return count
}
