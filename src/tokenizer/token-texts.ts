import type { ChatCodec } from "./chat-codec.ts"

/** Tokens that a character is spread over, at most; a window that has not closed by then is of a decoder that looks further back. */
const longestWindow = 16

/**
 * What each token adds to the text of a reply, in order: put together they are that text, without special tokens. A character that is
 * spread over several tokens is added by the last of them.
 */
export function tokenTexts(codec: Pick<ChatCodec, "decode">, tokens: Int32Array): string[] {
  const decode = (from: number, end: number) => codec.decode(tokens.subarray(from, end), { skipSpecial: true })
  const text = decode(0, tokens.length)
  const ends = windowedEnds(decode, tokens.length, text) ?? wholeEnds(decode, tokens.length, text)
  return ends.map((end, t) => text.slice(t === 0 ? 0 : ends[t - 1], end))
}

type Decode = (from: number, end: number) => string

/** Where in the text each token ends, found in short windows of tokens; undefined where that does not give the text. */
function windowedEnds(decode: Decode, tokens: number, text: string): number[] | undefined {
  const ends: number[] = []
  let [from, at] = [0, 0] // the window's first token, and where its text begins
  for (let t = 0; t < tokens; t++) {
    const said = decode(from, t + 1)
    const shared = sharedLength(said, text, at)
    ends.push(at + shared)
    if (shared === said.length) [from, at] = [t + 1, at + shared]
    else if (t - from >= longestWindow) return undefined
  }
  return from === tokens && at === text.length ? ends : undefined
}

/** The same by all tokens before: the time is the square of their number. */
function wholeEnds(decode: Decode, tokens: number, text: string): number[] {
  const ends: number[] = []
  // A character that is not whole yet may look like another: what has been said stays said.
  for (let t = 0; t < tokens; t++) ends.push(Math.max(sharedLength(decode(0, t + 1), text, 0), ends[t - 1] ?? 0))
  return ends
}

/** How much of `said` stands in the text from `at` on. */
function sharedLength(said: string, text: string, at: number): number {
  let length = 0
  while (length < said.length && said[length] === text[at + length]) length++
  return length
}
