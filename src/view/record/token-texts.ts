import buffer from "node:buffer"
import { TextDecoder } from "node:util"

/** Tokens of a block with their bytes, and decoding of token sequences. */
export class TokenTexts {
  readonly #bytes: Uint8Array[] = []
  /** Texts of tokens that are whole characters. */
  readonly #texts: (string | undefined)[] = []

  add(lengths: ArrayLike<number>, bytes: Uint8Array): void {
    let end = 0
    for (let token = 0; token < lengths.length; token++) {
      const one = bytes.subarray(end, end + lengths[token]!)
      end += one.length
      this.#bytes.push(one)
      this.#texts.push(wholeText(one))
    }
  }

  /** Total length in bytes of the tokens from one place to another. Throws for an unknown token. */
  length(tokens: ArrayLike<number>, from: number, to: number): number {
    let length = 0
    for (let at = from; at < to; at++) {
      const bytes = this.#bytes[tokens[at]!]
      if (!bytes) throw new Error("it refers to a token that does not exist")
      length += bytes.length
    }
    return length
  }

  /** Text that each token adds: a character of several tokens belongs to the last; invalid UTF-8 gives U+FFFD. */
  textsOf(tokens: ArrayLike<number>, from: number, to: number): string[] {
    const texts: string[] = []
    let open: TextDecoder | undefined // state of an incomplete character
    for (let at = from; at < to; at++) {
      const token = tokens[at]!
      const whole = this.#texts[token]
      if (whole !== undefined && !open) {
        texts.push(whole)
        continue
      }
      open ??= new TextDecoder("utf-8", { ignoreBOM: true })
      texts.push(open.decode(this.#bytes[token]!, { stream: true }))
      if (whole) open = undefined // the token is complete, and so are earlier characters
    }
    if (open && texts.length > 0) texts[texts.length - 1] += open.decode()
    return texts
  }
}

function wholeText(bytes: Uint8Array): string | undefined {
  return buffer.isUtf8(bytes) ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString() : undefined
}
