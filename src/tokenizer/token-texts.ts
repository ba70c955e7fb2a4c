import { joined } from "../util/joined.ts"
import type { ChatCodec } from "./chat-codec.ts"

/** Maximum number of tokens of a character. A longer window means that the decoder looks further back. */
const longestWindow = 16

/**
 * Text that each token adds to a completion. The concatenation is the text of the completion without special tokens. A character of several
 * tokens belongs to the last of them.
 */
export function tokenTexts(codec: Pick<ChatCodec, "decode">, tokens: Int32Array): string[] {
  const decode = (some: Int32Array) => codec.decode(some, { skipSpecial: true })
  const text = decode(tokens)
  const ends = windowedEnds(decode, tokens, text) ?? wholeEnds(decode, tokens, text)
  return ends.map((end, t) => text.slice(t === 0 ? 0 : ends[t - 1], end))
}

type Decode = (tokens: Int32Array) => string

/**
 * Index in the text at which each token ends, found in short windows of tokens; undefined if the windows do not give the text. A window is
 * decoded together with the previous one that has text, because some decoders drop a leading space.
 */
function windowedEnds(decode: Decode, tokens: Int32Array, text: string): number[] | undefined {
  const ends: number[] = []
  let [from, at] = [0, 0] // first token of the window, and where its text begins
  let lead: Int32Array = new Int32Array(0) // tokens of the window before
  let leading = 0 // length of their text
  for (let t = 0; t < tokens.length; t++) {
    const window = tokens.subarray(from, t + 1)
    const decoded = decode(joined(Int32Array, [lead, window])).slice(leading)
    const shared = sharedLength(decoded, text, at)
    ends.push(at + shared)
    if (shared === decoded.length) {
      if (shared > 0) {
        lead = window
        leading = decode(lead).length
      }
      ;[from, at] = [t + 1, at + shared]
    } else if (t - from >= longestWindow) return undefined
  }
  return from === tokens.length && at === text.length ? ends : undefined
}

/** Maximum number of prefixes that `wholeEnds` decodes. */
const mostDecoded = 1024

/**
 * Index in the text at which each token ends, found by decoding prefixes, for decoders that look far back. In completions longer than
 * `mostDecoded` tokens, the text of several consecutive tokens belongs to the last of them, so that the time does not grow quadratically.
 */
function wholeEnds(decode: Decode, tokens: Int32Array, text: string): number[] {
  const ends: number[] = []
  const apart = Math.ceil(tokens.length / mostDecoded)
  for (let t = 0; t < tokens.length; t++) {
    const before = ends[t - 1] ?? 0
    const decoded = (t + 1) % apart === 0 || t === tokens.length - 1
    // An incomplete character may decode to another one, so ends never decrease.
    ends.push(decoded ? Math.max(sharedLength(decode(tokens.subarray(0, t + 1)), text, 0), before) : before)
  }
  return ends
}

/** Length of the common prefix of `said` and the text from `at`. */
function sharedLength(decoded: string, text: string, at: number): number {
  let length = 0
  while (length < decoded.length && decoded[length] === text[at + length]) length++
  return length
}
