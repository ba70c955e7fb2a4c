/** Turns the tokens of a reply into text as they come; a character whose bytes are not all there is held back. */
export class ReplyText {
  readonly #decode: (tokens: Int32Array) => string
  /** Since a character last ended where a token did: tokens may end within characters one after the other. */
  #pending: number[] = []
  /** Characters of theirs that were told. */
  #told = 0

  constructor(decode: (tokens: Int32Array) => string) {
    this.#decode = decode
  }

  /** The text of these tokens, and of what was held back before them, as far as it is whole. */
  add(tokens: ArrayLike<number>): string {
    this.#pending.push(...Array.from(tokens))
    const text = this.#decode(Int32Array.from(this.#pending))
    const held = text.length - text.replace(/\u{fffd}+$/u, "").length
    // Bytes beyond what a character can lack are none, whatever follows them.
    if (held === 0 || held > longestBeginning) return this.#rest(text)
    const whole = text.slice(this.#told, text.length - held)
    this.#told = text.length - held
    if (this.#pending.length > mostPending) {
      // Where a text ends does not depend on tokens so far before: without them the time is that of the tokens, not of their square.
      this.#pending = this.#pending.slice(-keptPending)
      this.#told = this.#decode(Int32Array.from(this.#pending)).length - held
    }
    return whole
  }

  end(): string {
    return this.#rest(this.#decode(Int32Array.from(this.#pending)))
  }

  #rest(text: string): string {
    const rest = text.slice(this.#told)
    this.#pending = []
    this.#told = 0
    return rest
  }
}

/** Bytes of a character of which one is still to come; each may be written as one that cannot be read. */
const longestBeginning = 3
/** Tokens that are decoded together, and how many of the last ones stay when there are more. */
const [mostPending, keptPending] = [64, 16]
