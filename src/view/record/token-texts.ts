import buffer from "node:buffer"
import { TextDecoder } from "node:util"

/** The tokens of a block: their bytes, and the texts that sequences of them are. */
export class TokenTexts {
  readonly #bytes: Uint8Array[] = []
  /** Of those that are whole characters. */
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

  /** How many bytes these tokens are. Throws where one is not there. */
  length(tokens: ArrayLike<number>): number {
    let length = 0
    for (let at = 0; at < tokens.length; at++) {
      const bytes = this.#bytes[tokens[at]!]
      if (!bytes) throw new Error("it names a token that is not there")
      length += bytes.length
    }
    return length
  }

  /** What each token adds to the text: characters of several tokens stand with the last, bytes that are no UTF-8 are U+FFFD. */
  textsOf(tokens: ArrayLike<number>): string[] {
    const texts: string[] = []
    let open: TextDecoder | undefined // within a character
    for (let at = 0; at < tokens.length; at++) {
      const token = tokens[at]!
      const whole = this.#texts[token]
      if (whole !== undefined && !open) {
        texts.push(whole)
        continue
      }
      open ??= new TextDecoder("utf-8", { ignoreBOM: true })
      texts.push(open.decode(this.#bytes[token]!, { stream: true }))
      if (whole) open = undefined // it is all out, and so is what was open before it
    }
    if (open && texts.length > 0) texts[texts.length - 1] += open.decode()
    return texts
  }
}

function wholeText(bytes: Uint8Array): string | undefined {
  return buffer.isUtf8(bytes) ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString() : undefined
}
