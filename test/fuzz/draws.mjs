// Random numbers of one input: the same for the same words, whatever was drawn before.

/** FNV-1a over UTF-16 code units. */
function seedOf(text) {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash
}

export class Draws {
  #state

  constructor(...words) {
    this.#state = seedOf(words.join("/"))
  }

  /** From 0 up to `end`, without it (splitmix32). */
  below(end) {
    this.#state = (this.#state + 0x9e3779b9) | 0
    let mixed = this.#state ^ (this.#state >>> 16)
    mixed = Math.imul(mixed, 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return Math.floor((((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32) * end)
  }

  chance(share) {
    return this.below(1_000_000) < share * 1_000_000
  }

  of(values) {
    return values[this.below(values.length)]
  }
}
