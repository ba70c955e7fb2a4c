import { preTokenPattern } from "../byte-level.ts"

/** Pattern of GPT-2, which ByteLevel uses. */
export const byteLevelPattern: string =
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

const endings = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
const space = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
const upper = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
const lower = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
const before = "[^\\r\\n\\p{L}\\p{N}]?"
const mark = "!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~"

/**
 * Patterns of published tokenizers that backtrack but take linear time: text that one alternative reads without a match is matched by a
 * later alternative.
 */
export const linearPatterns: ReadonlySet<string> = new Set([
  preTokenPattern,
  byteLevelPattern,
  // cl100k
  "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
  // Llama 3 and derived models, Qwen 2, 3 and 3.5
  `${endings}|${before}\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${space}`,
  `${endings}|${before}\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${space}`,
  `${endings}|${before}[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${space}`,
  // o200k, Tekken
  `${before}${upper}*${lower}+${endings}?|${before}${upper}+${lower}*${endings}?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${space}`,
  `${before}${upper}*${lower}+|${before}${upper}+${lower}*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${space}`,
  // DeepSeek 3
  `[${mark}][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|${space}`,
])
