/**
 * Random numbers of CPython's `random` and of numpy's legacy `np.random`, so that environments first written in Python give the same
 * tasks for the same seed. Everything else in this package draws from `Random` (Philox).
 *
 * Generator: MT19937 (Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 1998) with the two seedings of the authors' 2002 version.
 * The distributions were checked against CPython 3.11 and numpy 2.4.
 */
const N = 624
const M = 397

/** MT19937, a generator of 32-bit words. */
export class MersenneTwister {
  readonly #state: Uint32Array
  #index = N

  private constructor(state: Uint32Array) {
    this.#state = state
  }

  /** Seeds with the authors' `init_genrand`, as numpy's `np.random.seed(n)` does. */
  static fromWord(word: number): MersenneTwister {
    return new MersenneTwister(expand(word))
  }

  /** Seeds with the authors' `init_by_array`, as CPython's `random.seed(n)` does with the 32-bit words of |n|, lowest first. */
  static fromWords(words: readonly number[]): MersenneTwister {
    const state = expand(19650218)
    let i = 1
    const advance = () => {
      if (++i < N) return
      state[0] = state[N - 1]!
      i = 1
    }
    const mixed = () => state[i - 1]! ^ (state[i - 1]! >>> 30)
    for (let k = 0; k < Math.max(N, words.length); k++) {
      const j = k % words.length
      state[i] = (state[i]! ^ Math.imul(mixed(), 1664525)) + words[j]! + j
      advance()
    }
    for (let k = 0; k < N - 1; k++) {
      state[i] = (state[i]! ^ Math.imul(mixed(), 1566083941)) - i
      advance()
    }
    state[0] = 0x80000000
    return new MersenneTwister(state)
  }

  /** Next 32 random bits. */
  uint32(): number {
    if (this.#index === N) this.#twist()
    let y = this.#state[this.#index++]!
    y ^= y >>> 11
    y ^= (y << 7) & 0x9d2c5680
    y ^= (y << 15) & 0xefc60000
    return (y ^ (y >>> 18)) >>> 0
  }

  #twist(): void {
    const state = this.#state
    for (let i = 0; i < N; i++) {
      const next = i + 1 < N ? i + 1 : 0
      const far = i + M < N ? i + M : i + M - N
      const y = (state[i]! & 0x80000000) | (state[next]! & 0x7fffffff)
      state[i] = state[far]! ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0)
    }
    this.#index = 0
  }
}

function expand(word: number): Uint32Array {
  const state = new Uint32Array(N)
  state[0] = word
  for (let i = 1; i < N; i++) state[i] = Math.imul(1812433253, state[i - 1]! ^ (state[i - 1]! >>> 30)) + i
  return state
}

/** CPython's `random.Random(seed)`. Methods have CPython's names and consume the same words of the generator. */
export class PythonRandom {
  readonly #words: MersenneTwister

  /** `seed` is an integer below 2^53 in absolute value. As in CPython, a seed and its negative give the same stream. */
  constructor(seed: number) {
    const size = Math.abs(seed)
    const high = Math.floor(size / 0x100000000)
    this.#words = MersenneTwister.fromWords(high > 0 ? [size >>> 0, high] : [size >>> 0])
  }

  /** `getrandbits(bits)` for 1 to 32 bits. */
  getrandbits(bits: number): number {
    return this.#words.uint32() >>> (32 - bits)
  }

  /** Uniform number in [0, 1) with 53 random bits. */
  random(): number {
    const high = this.#words.uint32() >>> 5
    return (high * 0x4000000 + (this.#words.uint32() >>> 6)) / 0x20000000000000
  }

  uniform(low: number, high: number): number {
    return low + (high - low) * this.random()
  }

  /** Uniform integer from 0 to limit - 1 (CPython's `_randbelow`), for limits below 2^32. */
  below(limit: number): number {
    const bits = 32 - Math.clz32(limit)
    for (;;) {
      const value = this.getrandbits(bits)
      if (value < limit) return value
    }
  }

  /** Uniform integer from low to high, both included. */
  randint(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  choice<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!
  }

  /** `count` items at different positions, in random order. */
  sample<T>(items: readonly T[], count: number): T[] {
    const n = items.length
    // CPython copies the items only if the copy is smaller than a set of the chosen indices.
    const copyUpTo = count > 5 ? 21 + 4 ** Math.ceil(Math.log(count * 3) / Math.log(4)) : 21
    if (n <= copyUpTo) {
      const pool = [...items]
      return Array.from({ length: count }, (_, i) => {
        const j = this.below(n - i)
        const item = pool[j]!
        pool[j] = pool[n - i - 1]!
        return item
      })
    }
    const chosen = new Set<number>()
    while (chosen.size < count) chosen.add(this.below(n))
    return Array.from(chosen, (j) => items[j]!)
  }

  /** Shuffles the items in place. */
  shuffle(items: unknown[]): void {
    for (let i = items.length - 1; i > 0; i--) {
      const j = this.below(i + 1)
      ;[items[i], items[j]] = [items[j], items[i]]
    }
  }
}

/** numpy's legacy `np.random.RandomState(seed)`, limited to the methods that environments need. */
export class NumpyRandom {
  readonly #words: MersenneTwister

  /** `seed` is an integer from 0 to 2^32 - 1. */
  constructor(seed: number) {
    this.#words = MersenneTwister.fromWord(seed)
  }

  /** Uniform integer from 0 to limit - 1, for limits up to 2^32. A limit of 1 consumes no word. */
  randint(limit: number): number {
    if (limit === 1) return 0
    const mask = 0xffffffff >>> Math.clz32(limit - 1)
    for (;;) {
      const value = (this.#words.uint32() & mask) >>> 0
      if (value < limit) return value
    }
  }
}
