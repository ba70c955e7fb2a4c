import type { Completion } from "../../engine/engine.ts"
import { GigpoError } from "../../util/errors.ts"

/**
 * Returns the mean entropy of the first tokens of a completion, in nats.
 *
 * @param who - name of the hook, for messages.
 */
export function entropyOf(who: string, { entropies }: Completion, most = Number.POSITIVE_INFINITY): number {
  const first = entropiesOf(who, entropies).subarray(0, most)
  return first.reduce((sum, entropy) => sum + entropy, 0) / first.length
}

export function entropiesOf(who: string, entropies: Float32Array | undefined): Float32Array {
  if (entropies) return entropies
  throw new GigpoError(
    "BAD_ARGUMENT",
    `${who} needs the entropies of completions, which this engine does not report; use another engine, or remove the hook.`,
  )
}

/** Returns an entropy as a share of its maximum, log V. */
export function vocabularyShare(entropy: number, vocabularySize: number): number {
  return entropy / Math.log(vocabularySize)
}
