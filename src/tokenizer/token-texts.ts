import { joined } from "../util/joined.ts"
import type { ChatCodec } from "./chat-codec.ts"

/** Tokens that a character is spread over, at most; a window that has not closed by then is of a decoder that looks further back. */
const longestWindow = 16

/**
 * What each token adds to the text of a reply, in order: put together they are that text, without special tokens. A character that is
 * spread over several tokens is added by the last of them.
 */
export function tokenTexts(codec: Pick<ChatCodec, "decode">, tokens: Int32Array): string[] {
  const decode = (some: Int32Array) => codec.decode(some, { skipSpecial: true })
  const text = decode(tokens)
  const ends = windowedEnds(decode, tokens, text) ?? wholeEnds(decode, tokens, text)
  return ends.map((end, t) => text.slice(t === 0 ? 0 : ends[t - 1], end))
}

type Decode = (tokens: Int32Array) => string

/**
 * Where in the text each token ends, found in short windows of tokens; undefined where that does not give the text. A window is decoded
 * with the last one before it that has a text: some decoders drop the space in front of a text.
 */
function windowedEnds(decode: Decode, tokens: Int32Array, text: string): number[] | undefined {
  const ends: number[] = []
  let [from, at] = [0, 0] // first token of the window, and where its text begins
  let lead: Int32Array = new Int32Array(0) // tokens of the window before
  let leading = 0 // length of their text
  for (let t = 0; t < tokens.length; t++) {
    const window = tokens.subarray(from, t + 1)
    const said = decode(joined(Int32Array, [lead, window])).slice(leading)
    const shared = sharedLength(said, text, at)
    ends.push(at + shared)
    if (shared === said.length) {
      if (shared > 0) {
        lead = window
        leading = decode(lead).length
      }
      ;[from, at] = [t + 1, at + shared]
    } else if (t - from >= longestWindow) return undefined
  }
  return from === tokens.length && at === text.length ? ends : undefined
}

/** Texts that `wholeEnds` decodes at most: each is of all tokens before. */
const mostDecoded = 1024

/**
 * The same by all tokens before, for decoders that look far back. Of replies longer than `mostDecoded` tokens several tokens in a row give
 * their text to the last of them, so that the time is not the square of their number.
 */
function wholeEnds(decode: Decode, tokens: Int32Array, text: string): number[] {
  const ends: number[] = []
  const apart = Math.ceil(tokens.length / mostDecoded)
  for (let t = 0; t < tokens.length; t++) {
    const before = ends[t - 1] ?? 0
    const decoded = (t + 1) % apart === 0 || t === tokens.length - 1
    // A character that is not whole yet may look like another: what has been said stays said.
    ends.push(decoded ? Math.max(sharedLength(decode(tokens.subarray(0, t + 1)), text, 0), before) : before)
  }
  return ends
}

/** How much of `said` stands in the text from `at` on. */
function sharedLength(said: string, text: string, at: number): number {
  let length = 0
  while (length < said.length && said[length] === text[at + length]) length++
  return length
}
