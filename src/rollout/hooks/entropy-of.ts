import type { Completion } from "../../engine/engine.ts"
import { GigpoError } from "../../util/errors.ts"

/**
 * The mean entropy of a reply's first tokens, in nats.
 *
 * @param who asks for it, for messages
 */
export function entropyOf(who: string, { entropies }: Completion, most = Number.POSITIVE_INFINITY): number {
  const first = entropiesOf(who, entropies).subarray(0, most)
  return first.reduce((sum, entropy) => sum + entropy, 0) / first.length
}

export function entropiesOf(who: string, entropies: Float32Array | undefined): Float32Array {
  if (entropies) return entropies
  throw new GigpoError(
    "BAD_ARGUMENT",
    `${who} reads the entropies of replies, which this engine does not tell; take another engine, or leave the hook off.`,
  )
}

/** An entropy as a share of what it can be at most, log V. */
export function vocabularyShare(entropy: number, vocabularySize: number): number {
  return entropy / Math.log(vocabularySize)
}
