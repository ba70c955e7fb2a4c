import { GigpoError } from "./errors.ts"

/**
 * Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 * A number is a pure function of (key, counter), so results do not depend on scheduling, concurrency or resumption.
 * core/random.h is the C++ counterpart.
 */
const M0 = 0xd2511f53
const M1 = 0xcd9e8d57
const W0 = 0x9e3779b9
const W1 = 0xbb67ae85

/** Philox with ten rounds: four 32-bit counter words and a 64-bit key in, four 32-bit words out. */
export function philox(
  key: readonly [number, number],
  counter: readonly [number, number, number, number],
): [number, number, number, number] {
  let [k0, k1] = [key[0] >>> 0, key[1] >>> 0]
  let [c0, c1, c2, c3] = counter
  for (let round = 0; round < 10; round++) {
    const high0 = multiplyHigh(M0, c0 >>> 0)
    const low0 = Math.imul(M0, c0) >>> 0
    const high1 = multiplyHigh(M1, c2 >>> 0)
    const low1 = Math.imul(M1, c2) >>> 0
    ;[c0, c1, c2, c3] = [(high1 ^ c1 ^ k0) >>> 0, low1, (high0 ^ c3 ^ k1) >>> 0, low0]
    k0 = (k0 + W0) >>> 0
    k1 = (k1 + W1) >>> 0
  }
  return [c0 >>> 0, c1 >>> 0, c2 >>> 0, c3 >>> 0]
}

/** High 32 bits of a 32×32-bit product, computed by 16-bit halves, since a double cannot hold the whole product. */
function multiplyHigh(a: number, b: number): number {
  const [aHigh, aLow, bHigh, bLow] = [a >>> 16, a & 0xffff, b >>> 16, b & 0xffff]
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16)
  const carry = aLow * bHigh + (middle % 0x10000)
  return aHigh * bHigh + Math.floor(middle / 0x10000) + Math.floor(carry / 0x10000)
}

/** Stream of random numbers that can be split into named, independent streams. */
export class Random {
  /** Two 32-bit words that determine all numbers of the stream. */
  readonly key: readonly [number, number]
  #counter = 0

  constructor(seed: number | readonly [number, number]) {
    this.key = typeof seed === "number" ? [seed >>> 0, Math.floor(seed / 0x100000000) >>> 0] : seed
  }

  /**
   * Returns the stream named by these parts, e.g. `random.derive("rollout", iteration, task, member, step)`. Independent
   * of how many numbers this stream has produced.
   */
  derive(...parts: readonly (number | string)[]): Random {
    let key = this.key
    for (const part of parts) {
      if (typeof part === "number") key = next(key, part >>> 0, Math.floor(part / 0x100000000) >>> 0, 1)
      else for (let i = 0; i <= part.length; i++) key = next(key, i === part.length ? i : part.charCodeAt(i), i, 2)
    }
    return new Random(key)
  }

  /** Next 32 random bits. */
  uint32(): number {
    const counter = this.#counter++
    return philox(this.key, [counter >>> 0, Math.floor(counter / 0x100000000) >>> 0, 0, 0])[0]
  }

  /** Uniform number in [0, 1) with 53 bits. */
  uniform(): number {
    return ((this.uint32() >>> 5) * 0x4000000 + (this.uint32() >>> 6)) / 0x20000000000000
  }

  /**
   * Uniform integer in 0 … limit - 1, without bias. Throws `BAD_ARGUMENT` unless `limit` is an integer from 1 to 2^32.
   */
  below(limit: number): number {
    if (!(Number.isInteger(limit) && limit >= 1 && limit <= 0x100000000))
      throw new GigpoError("BAD_ARGUMENT", `random.below(${limit}): limit must be an integer from 1 to 2^32.`)
    const usable = 0x100000000 - (0x100000000 % limit)
    for (;;) {
      const word = this.uint32()
      if (word < usable) return word % limit
    }
  }

  /** Random index, with probability proportional to its weight. */
  weighted(shares: ArrayLike<number>): number {
    let total = 0
    for (let i = 0; i < shares.length; i++) total += shares[i]!
    let left = this.uniform() * total
    for (let i = 0; i < shares.length; i++) {
      left -= shares[i]!
      if (left < 0) return i
    }
    throw new GigpoError("BAD_ARGUMENT", "random.weighted(): weights must be non-negative, and one of them above 0.")
  }

  /** Returns the items in a random order. */
  shuffled<T>(items: readonly T[]): T[] {
    const result = [...items]
    for (let i = result.length - 1; i > 0; i--) {
      const j = this.below(i + 1)
      ;[result[i], result[j]] = [result[j]!, result[i]!]
    }
    return result
  }
}

/** Hashes one part of a name into a key. Counter words 2 and 3 separate these blocks from those of streams. */
function next(key: readonly [number, number], a: number, b: number, kind: number): [number, number] {
  const [x, y] = philox(key, [a, b, kind, 0x67697067])
  return [x, y]
}
