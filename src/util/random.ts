import { GigpoError } from "./errors.ts"

/**
 * Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 * A number is a pure function of (key, counter), so results depend neither on scheduling nor on concurrency nor on
 * resuming. The C++ twin is core/random.h.
 */
const M0 = 0xd2511f53
const M1 = 0xcd9e8d57
const W0 = 0x9e3779b9
const W1 = 0xbb67ae85

/** Ten rounds over four 32-bit counter words with a 64-bit key; four 32-bit words out. */
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

/** High 32 bits of a 32×32-bit product, by 16-bit halves (a double cannot hold the whole product). */
function multiplyHigh(a: number, b: number): number {
  const [aHigh, aLow, bHigh, bLow] = [a >>> 16, a & 0xffff, b >>> 16, b & 0xffff]
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16)
  const carry = aLow * bHigh + (middle % 0x10000)
  return aHigh * bHigh + Math.floor(middle / 0x10000) + Math.floor(carry / 0x10000)
}

/** A stream of random numbers that can be split into named, independent streams. */
export class Random {
  readonly key: readonly [number, number]
  #counter = 0

  constructor(seed: number | readonly [number, number]) {
    this.key = typeof seed === "number" ? [seed >>> 0, Math.floor(seed / 0x100000000) >>> 0] : seed
  }

  /**
   * The stream named by these parts, e.g. `random.fork("rollout", iteration, task, member, step)`. Independent of how
   * many numbers this stream has given.
   */
  fork(...parts: readonly (number | string)[]): Random {
    let key = this.key
    for (const part of parts) {
      if (typeof part === "number") key = next(key, part >>> 0, Math.floor(part / 0x100000000) >>> 0, 1)
      else for (let i = 0; i <= part.length; i++) key = next(key, i === part.length ? i : part.charCodeAt(i), i, 2)
    }
    return new Random(key)
  }

  /** The next 32 random bits. */
  uint32(): number {
    const counter = this.#counter++
    return philox(this.key, [counter >>> 0, Math.floor(counter / 0x100000000) >>> 0, 0, 0])[0]
  }

  /** Uniform in [0, 1), 53 bits. */
  uniform(): number {
    return ((this.uint32() >>> 5) * 0x4000000 + (this.uint32() >>> 6)) / 0x20000000000000
  }

  /** Uniform among 0 … limit - 1, without bias. Throws `BAD_ARGUMENT` unless `limit` is a whole number from 1 to 2^32. */
  below(limit: number): number {
    if (!(Number.isInteger(limit) && limit >= 1 && limit <= 0x100000000))
      throw new GigpoError("BAD_ARGUMENT", `random.below(${limit}): give a whole number from 1 to 2^32.`)
    const usable = 0x100000000 - (0x100000000 % limit)
    for (;;) {
      const word = this.uint32()
      if (word < usable) return word % limit
    }
  }

  /** An index, drawn by its share of the whole. */
  weighted(shares: ArrayLike<number>): number {
    let total = 0
    for (let i = 0; i < shares.length; i++) total += shares[i]!
    let left = this.uniform() * total
    for (let i = 0; i < shares.length; i++) {
      left -= shares[i]!
      if (left < 0) return i
    }
    throw new GigpoError("BAD_ARGUMENT", "random.weighted(): give shares that are not negative, one of them above 0.")
  }

  /** The same items in a random order. */
  shuffled<T>(items: readonly T[]): T[] {
    const result = [...items]
    for (let i = result.length - 1; i > 0; i--) {
      const j = this.below(i + 1)
      ;[result[i], result[j]] = [result[j]!, result[i]!]
    }
    return result
  }
}

/** Folds one part of a name into a key. Counter words 2 and 3 keep these blocks apart from those that streams draw. */
function next(key: readonly [number, number], a: number, b: number, kind: number): [number, number] {
  const [x, y] = philox(key, [a, b, kind, 0x67697067])
  return [x, y]
}
