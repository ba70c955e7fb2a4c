import { termOf } from "./analyse.ts"

const stopped = -1
const longestCached = 40

/** Numbers terms in order of first occurrence, with a cache of recent words. */
export class Vocabulary {
  readonly #terms = new Shards()
  readonly #words = new Shards()
  readonly #capacity: number

  /** @param capacity - maximum number of cached words */
  constructor(capacity = 1 << 18) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#terms.size
  }

  /** Number of the word's term, assigned if new; -1 for a stop word. */
  add(word: string): number {
    const known = this.#words.get(word)
    if (known !== undefined) return known
    const term = termOf(word)
    let id = term === undefined ? stopped : this.#terms.get(term)
    if (id === undefined) {
      id = this.#terms.size
      this.#terms.set(detached(term!), id)
    }
    if (word.length <= longestCached) {
      if (this.#words.size >= this.#capacity) this.#words.clear()
      this.#words.set(detached(word), id)
    }
    return id
  }

  /** Number of a term, if any document contains it. */
  find(term: string): number | undefined {
    return this.#terms.get(term)
  }

  /** Drops the cache of words; the terms stay. */
  close(): void {
    this.#words.clear()
  }
}

/** Map in 64 parts: one large Map blocks for tens of milliseconds when it grows. */
class Shards {
  #parts = Array.from({ length: 64 }, () => new Map<string, number>())
  size = 0

  get(key: string): number | undefined {
    return this.#part(key).get(key)
  }

  /** Adds a new key. */
  set(key: string, value: number): void {
    this.#part(key).set(key, value)
    this.size++
  }

  clear(): void {
    for (const part of this.#parts) part.clear()
    this.size = 0
  }

  #part(key: string): Map<string, number> {
    const mixed = key.charCodeAt(0) * 31 + key.charCodeAt(key.length - 1) * 17 + key.charCodeAt(key.length >> 1)
    return this.#parts[mixed & 63]!
  }
}

/** Copy of a string: V8 lets a slice of 13 characters or more keep its source text alive. */
function detached(text: string): string {
  return text.length < 13 ? text : Buffer.from(text, "utf16le").toString("utf16le")
}
