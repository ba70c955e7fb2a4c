import type { TokenColumn } from "../engine/sequence.ts"
import { GigpoError } from "../util/errors.ts"
import type { Batch } from "./estimator.ts"

/** Entropies of the sampled tokens in nats, [steps][tokens]. Available if `needs` requests them. */
export function entropiesOf({ statistics }: Batch, who: string): readonly TokenColumn[] {
  if (statistics?.entropy) return statistics.entropy
  throw new GigpoError("BAD_ARGUMENT", `${who} needs the entropy of each sampled token; give statistics.entropy.`)
}

/** Mean entropy of each step's tokens, [steps]. */
export function meanEntropies(batch: Batch, who: string): Float64Array {
  return Float64Array.from(entropiesOf(batch, who), (tokens) => {
    let sum = 0
    for (const entropy of tokens) sum += entropy
    return sum / tokens.length
  })
}
