/**
 * Printable characters for the 256 bytes, by which Hugging Face writes byte-level BPE vocabularies and merges as JSON strings. The mapping is
 * GPT-2's: printable Latin-1 bytes represent themselves, the other 68 bytes have the code points from U+0100 (a space is Ġ).
 */
export const byteCharacters: readonly string[] = (() => {
  const printable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff)
  let others = 0
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : 0x100 + others++))
})()

/**
 * Pattern of pre-tokens, into which text is split before merging. Each pre-token includes one space before it, so that " Observation" or a
 * cell " #" of a grid can be one token:
 *
 *     a tag (`<action>`, `</think>`) | a word | one other symbol | spaces before the last of a run | one white space
 *
 * Digits are symbols, so numbers are split into digits. The pattern has the same meaning in JavaScript (flag u) and in the Rust library
 * (Oniguruma). It avoids \s and \w, which these define differently.
 */
export const preTokenPattern: string = [
  " ?(?:",
  "</?\\p{L}[\\p{L}\\p{N}_-]*>",
  "|\\p{L}[\\p{L}\\p{M}]*",
  "|[^\\p{White_Space}\\p{L}]",
  ")",
  "| +(?= )",
  "|\\p{White_Space}",
].join("")

/** Value of `pre_tokenizer` in tokenizer.json. */
export const preTokenizer: object = {
  type: "Sequence",
  pretokenizers: [
    { type: "Split", pattern: { Regex: preTokenPattern }, behavior: "Isolated", invert: false },
    { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
  ],
}
