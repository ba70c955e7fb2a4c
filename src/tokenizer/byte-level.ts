/**
 * Byte-level BPE as Hugging Face writes it: a pre-token's UTF-8 bytes, each shown as one printable character, so that
 * vocabularies and merges are plain JSON strings. The mapping is GPT-2's: printable Latin-1 bytes stand for
 * themselves, the other 68 take the code points from U+0100 on (a space becomes Ġ).
 */
export const byteCharacters: readonly string[] = (() => {
  const printable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff)
  let others = 0
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : 0x100 + others++))
})()

/**
 * Where text is cut before merging: tokens never span a cut. Each thing takes the one space before it, so that
 * " Observation" or a cell " #" of a grid can become one token:
 *
 *     a tag (`<action>`, `</think>`) | a word | one other symbol | spaces before the last of a run | one white space
 *
 * Digits are symbols: numbers are read digit by digit. The pattern means the same to JavaScript (flag u) and to the
 * Rust library (Oniguruma): it keeps off \s and \w, which the two define differently.
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

/** The `pre_tokenizer` of tokenizer.json. */
export const preTokenizer: object = {
  type: "Sequence",
  pretokenizers: [
    { type: "Split", pattern: { Regex: preTokenPattern }, behavior: "Isolated", invert: false },
    { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
  ],
}
