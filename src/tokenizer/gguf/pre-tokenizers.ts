/** Normalizer and pre-tokenizer of tokenizer.json that belong to a name in `tokenizer.ggml.pre`. */
export interface NamedPreTokenizer {
  readonly normalizer: object | null
  readonly pre_tokenizer: object
  /** Whether a piece that is itself a token becomes one token without merging. */
  readonly ignore_merges: boolean
}

const byteLevel = (use_regex: boolean) => ({
  type: "ByteLevel",
  add_prefix_space: false,
  trim_offsets: true,
  use_regex,
})
const sequence = (...pretokenizers: object[]) => ({ type: "Sequence", pretokenizers })
const pattern = (...alternatives: readonly string[]) =>
  sequence(
    { type: "Split", pattern: { Regex: alternatives.join("|") }, behavior: "Isolated", invert: false },
    byteLevel(false),
  )

const contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
const word = "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
const rest = [" ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*", "\\s*[\\r\\n]+", "\\s+(?!\\S)", "\\s+"] as const

const gpt2: NamedPreTokenizer = { normalizer: null, pre_tokenizer: byteLevel(true), ignore_merges: false }
/** GPT-2's pre-tokenizer with every digit on its own. */
const digits: NamedPreTokenizer = {
  normalizer: null,
  pre_tokenizer: sequence({ type: "Digits", individual_digits: true }, byteLevel(true)),
  ignore_merges: false,
}
const llama3: NamedPreTokenizer = {
  normalizer: null,
  pre_tokenizer: pattern(contractions, word, "\\p{N}{1,3}", ...rest),
  ignore_merges: true,
}
const qwen2: NamedPreTokenizer = {
  normalizer: { type: "NFC" },
  pre_tokenizer: pattern(contractions, word, "\\p{N}", ...rest),
  ignore_merges: false,
}

/** Pre-tokenizers of byte-level BPE by their name in llama.cpp. The first name of each is the one that is written. */
export const preTokenizers: ReadonlyMap<string, NamedPreTokenizer> = new Map([
  ["gpt-2", gpt2],
  ["smollm", digits],
  ["starcoder", digits],
  ["refact", digits],
  ["llama-bpe", llama3],
  ["llama-v3", llama3],
  ["llama3", llama3],
  ["qwen2", qwen2],
])
