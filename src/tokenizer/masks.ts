import { GigpoError } from "../util/errors.ts"

/** Range of private-use characters of one UTF-16 unit that serve as masks. */
const [first, last] = [0xe100, 0xf8ff]
const privateUse = /[\ue100-\uf8ff]/g

/** Text without masks, with their former places. */
export interface Unmasked {
  readonly text: string
  /** UTF-16 indices of characters that were masked. */
  readonly masked: ReadonlySet<number>
}

/**
 * Masks of characters: each masked character is replaced by a private-use character, so that the text keeps its length. Masks do not
 * occur in the texts passed to `avoid`.
 */
export class Masks {
  readonly #taken = new Set<string>()
  readonly #maskOf = new Map<string, string>()
  readonly #charOf = new Map<string, string>()
  #next = first

  /** Excludes the characters of these texts from the masks. Call before the first mask is used. */
  avoid(texts: Iterable<string>): void {
    for (const text of texts) for (const [char] of text.matchAll(privateUse)) this.#taken.add(char)
  }

  /** Mask of a character; equal characters have equal masks. */
  of(char: string): string {
    const known = this.#maskOf.get(char)
    if (known !== undefined) return known
    while (this.#taken.has(String.fromCharCode(this.#next))) this.#next++
    if (this.#next > last)
      throw new GigpoError(
        "BAD_ARGUMENT",
        "The messages contain all private-use characters: send messages with fewer of them.",
      )
    const mask = String.fromCharCode(this.#next++)
    this.#maskOf.set(char, mask)
    this.#charOf.set(mask, char)
    return mask
  }

  has(mask: string): boolean {
    return this.#charOf.has(mask)
  }

  /** Replaces the masks of a text by their characters. */
  removed(text: string): Unmasked {
    const masked = new Set<number>()
    if (this.#charOf.size === 0) return { text, masked }
    const plain = text.replace(privateUse, (mask, at: number) => {
      const char = this.#charOf.get(mask)
      if (char !== undefined) masked.add(at)
      return char ?? mask
    })
    return { text: plain, masked }
  }
}
