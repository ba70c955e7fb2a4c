/**
 * Text of a tool call up to its end mark, read in pieces. A mark within a JSON string is part of the call. In text that
 * is not JSON, so that its quotes mean nothing, the first mark ends the call.
 */
export class CallText {
  readonly #mark: string
  #text = ""
  #quoted = false
  #escaped = false
  #isJson = true
  /** Characters of the mark that the text ends with. */
  #matched = 0
  /** End of the first mark; undefined if there is none yet. */
  #first: number | undefined

  /** @param mark - text without quotes and backslashes, whose first character occurs in it only once */
  constructor(mark: string) {
    this.#mark = mark
  }

  /** Adds text. Returns the call without its end mark, and the text after it; undefined until the call has ended. */
  take(text: string): { readonly call: string; readonly rest: string } | undefined {
    const before = this.#text.length
    this.#text += text
    for (let at = 0; at < text.length; at++) {
      const end = this.#read(text[at]!, before + at + 1)
      if (end !== undefined) return { call: this.#text.slice(0, end - this.#mark.length), rest: this.#text.slice(end) }
    }
    return undefined
  }

  /** Text so far. */
  get text(): string {
    return this.#text
  }

  /** Reads a character that ends at a position. Returns the end of the mark that ends the call. */
  #read(char: string, at: number): number | undefined {
    this.#matched = char === this.#mark[this.#matched] ? this.#matched + 1 : char === this.#mark[0] ? 1 : 0
    const ended = this.#matched === this.#mark.length
    if (ended) {
      this.#matched = 0
      this.#first ??= at
    }
    if (this.#escaped) this.#escaped = false
    else if (char === '"') this.#quoted = !this.#quoted
    else if (char === "\\" && this.#quoted) this.#escaped = true
    else if (char === "\\" || (this.#quoted && char < " ")) this.#isJson = false
    if (!this.#isJson) return this.#first
    return ended && !this.#quoted ? at : undefined
  }
}
