/**
 * numpy's `Generator(PCG64(SeedSequence(seed)))`, which is gymnasium's `np_random`: PCG-XSL-RR 128/64 (O'Neill, "PCG: A
 * Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random Number Generation", 2014), seeded by
 * O'Neill's `seed_seq_fe`. Checked against numpy 2.4.
 */
const mask64 = (1n << 64n) - 1n
const mask128 = (1n << 128n) - 1n
const multiplier = 0x2360ed051fc65da44385df649fccf645n

export class Pcg64 {
  #state: bigint
  readonly #increment: bigint
  /** Upper half of the last 64 bits, if only the lower half was used. */
  #spare: number | undefined

  /** `seed` is an integer from 0 to 2^53 - 1. */
  constructor(seed: number) {
    const [stateHigh, stateLow, sequenceHigh, sequenceLow] = seedWords(seed) as [bigint, bigint, bigint, bigint]
    this.#increment = ((((sequenceHigh << 64n) | sequenceLow) << 1n) | 1n) & mask128
    this.#state = (this.#increment + ((stateHigh << 64n) | stateLow)) & mask128
    this.#step()
  }

  #step(): void {
    this.#state = (this.#state * multiplier + this.#increment) & mask128
  }

  /** Next 64 random bits. */
  uint64(): bigint {
    this.#step()
    const folded = (this.#state >> 64n) ^ (this.#state & mask64)
    const rotation = this.#state >> 122n
    return ((folded >> rotation) | (folded << (64n - rotation))) & mask64
  }

  /** Next 32 random bits: the lower half of 64, then the upper half. */
  uint32(): number {
    if (this.#spare !== undefined) {
      const spare = this.#spare
      this.#spare = undefined
      return spare
    }
    const bits = this.uint64()
    this.#spare = Number(bits >> 32n)
    return Number(bits & 0xffffffffn)
  }

  /**
   * Random item, as `Generator.choice` draws it: by Lemire's method ("Fast Random Integer Generation in an Interval",
   * ACM TOMACS 2019) on 32 bits. A list of one item consumes no random bits.
   */
  choice<T>(items: readonly T[]): T {
    const limit = BigInt(items.length)
    if (limit === 1n) return items[0]!
    for (;;) {
      const product = BigInt(this.uint32()) * limit
      const low = product & 0xffffffffn
      if (low >= limit || low >= 0x100000000n % limit) return items[Number(product >> 32n)]!
    }
  }
}

/** `SeedSequence(seed).generate_state(4, uint64)`: the seed's words are hashed into a pool of four, the pool into the output. */
function seedWords(seed: number): bigint[] {
  const entropy = seed > 0xffffffff ? [seed % 0x100000000, Math.floor(seed / 0x100000000)] : [seed]
  const hashIn = hasher(0x43b0d7e5, 0x931e8875)
  const pool = Array.from({ length: 4 }, (_, i) => hashIn(entropy[i] ?? 0))
  for (let from = 0; from < 4; from++) {
    for (let to = 0; to < 4; to++) {
      if (from !== to) pool[to] = mix(pool[to]!, hashIn(pool[from]!))
    }
  }
  const hashOut = hasher(0x8b51f9dd, 0x58f38ded)
  const words = Array.from({ length: 8 }, (_, i) => BigInt(hashOut(pool[i % 4]!)))
  return Array.from({ length: 4 }, (_, i) => words[2 * i]! | (words[2 * i + 1]! << 32n))
}

/** Hash function whose constant changes with every call. */
function hasher(start: number, factor: number): (word: number) => number {
  let constant = start
  return (word) => {
    let value = (word ^ constant) >>> 0
    constant = Math.imul(constant, factor) >>> 0
    value = Math.imul(value, constant) >>> 0
    return (value ^ (value >>> 16)) >>> 0
  }
}

function mix(a: number, b: number): number {
  const value = (Math.imul(a, 0xca01f9dd) - Math.imul(b, 0x4973f715)) >>> 0
  return (value ^ (value >>> 16)) >>> 0
}
