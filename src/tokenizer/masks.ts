import { GigpoError } from "../util/errors.ts"

/** Private-use characters of one UTF-16 unit each, from which masks are taken. */
const [first, last] = [0xe100, 0xf8ff]
const privateUse = /[\ue100-\uf8ff]/g

/** Text without masks, and where they stood. */
export interface Unmasked {
  readonly text: string
  /** UTF-16 indices. */
  readonly masked: ReadonlySet<number>
}

/**
 * Private-use characters in place of others, one for each character that is masked. Text keeps its length. The masks
 * occur in none of the texts that `avoid` was given.
 */
export class Masks {
  readonly #taken = new Set<string>()
  readonly #maskOf = new Map<string, string>()
  readonly #charOf = new Map<string, string>()
  #next = first

  /** Takes no mask that occurs in these texts. To be called before the first mask is taken. */
  avoid(texts: Iterable<string>): void {
    for (const text of texts) for (const [char] of text.matchAll(privateUse)) this.#taken.add(char)
  }

  /** The mask of a character: always the same one. */
  of(char: string): string {
    const known = this.#maskOf.get(char)
    if (known !== undefined) return known
    while (this.#taken.has(String.fromCharCode(this.#next))) this.#next++
    if (this.#next > last)
      throw new GigpoError("BAD_ARGUMENT", "The messages hold every private-use character: send fewer of them.")
    const mask = String.fromCharCode(this.#next++)
    this.#maskOf.set(char, mask)
    this.#charOf.set(mask, char)
    return mask
  }

  has(mask: string): boolean {
    return this.#charOf.has(mask)
  }

  /** The text with the characters that its masks stand for. */
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
