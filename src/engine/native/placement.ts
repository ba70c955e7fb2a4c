/** Prompt that a replica has in its KV cache, as far as the requests tell. */
const mostPrompts = 2 ** 16

/**
 * Tokens, in requests of the same size, that a replica may have more than the least busy one before a request with a known beginning is sent
 * elsewhere. A sampling step of a GPU takes hardly longer with as many more sequences.
 */
const mostAhead = 32

/**
 * Placement of sampling requests on replicas. A request that begins with the prompt of an earlier one (the next turn of a conversation,
 * another episode of a group) goes to the replica that has computed it, so that prefixes are computed once. All others go to the replica
 * with the fewest tokens in flight. The tokens that are sampled do not depend on the replica.
 */
export class Placement {
  readonly #inFlight: number[]
  /** Replicas by the hash of a prompt, the least recently used first. */
  readonly #homes = new Map<number, number>()

  constructor(replicas: number) {
    this.#inFlight = new Array(replicas).fill(0)
  }

  /** Chooses the replica of a request. `done` must be called once the request has ended. */
  place({ prompt, maxTokens }: { readonly prompt: Int32Array; readonly maxTokens: number }): {
    readonly replica: number
    readonly done: () => void
  } {
    const tokens = prompt.length + maxTokens
    const least = this.#inFlight.indexOf(Math.min(...this.#inFlight))
    const hashes = prefixHashes(prompt)
    const known = hashes.findLast((hash) => this.#homes.has(hash))
    const home = known === undefined ? least : this.#homes.get(known)!
    const replica = this.#inFlight[home]! - this.#inFlight[least]! > mostAhead * tokens ? least : home
    if (known !== undefined) this.#remember(known, home)
    this.#remember(hashes.at(-1) ?? 0, replica)
    this.#inFlight[replica]! += tokens
    const done = () => {
      this.#inFlight[replica]! -= tokens
    }
    return { replica, done }
  }

  #remember(hash: number, replica: number): void {
    this.#homes.delete(hash)
    this.#homes.set(hash, replica)
    if (this.#homes.size > mostPrompts) this.#homes.delete(this.#homes.keys().next().value!)
  }
}

/** Hash of each prefix of a prompt, the shortest first. Equal hashes of different prompts only cost time. */
function prefixHashes(prompt: Int32Array): Float64Array {
  const hashes = new Float64Array(prompt.length)
  let [low, high] = [0x811c9dc5, 0x9e3779b9]
  for (let i = 0; i < prompt.length; i++) {
    low = Math.imul(low ^ prompt[i]!, 0x01000193)
    high = Math.imul(high ^ prompt[i]! ^ (low >>> 15), 0x85ebca6b)
    hashes[i] = (high >>> 11) * 2 ** 32 + (low >>> 0)
  }
  return hashes
}
