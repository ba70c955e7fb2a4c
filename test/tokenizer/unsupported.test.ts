import { describe, expect, it } from "vitest"
import { openBpe } from "../../src/tokenizer/bpe/open.ts"
import { tokenizerJson } from "./bpe-fixture.ts"

const pattern = (source: string) => ({
  type: "Split",
  pattern: { Regex: source },
  behavior: "Isolated",
  invert: false,
})
const metaspace = { type: "Metaspace", replacement: "▁", prepend_scheme: "first", split: true }

/** What is rejected, and the name by which it is. */
const changes: Record<string, [change: object, named: string]> = {
  "a key of the file": [{ postnormalizer: null }, "postnormalizer"],
  "a version": [{ version: "2.0" }, "2.0"],
  "a kind of normalizer": [{ normalizer: { type: "Lowercase" } }, "Lowercase"],
  "a normalizer within a sequence": [
    { normalizer: { type: "Sequence", normalizers: [{ type: "NFC" }, { type: "StripAccents" }] } },
    "StripAccents",
  ],
  "a normalizer with a character map": [
    { normalizer: { type: "Precompiled", precompiled_charsmap: "" } },
    "Precompiled",
  ],
  "a key of a normalizer": [{ normalizer: { type: "NFC", form: "x" } }, "form"],
  "a kind of pre-tokenizer": [{ pre_tokenizer: { type: "UnicodeScripts" } }, "UnicodeScripts"],
  "a behavior": [{ pre_tokenizer: { ...pattern("a"), behavior: "Doubled" } }, "Doubled"],
  "a key of a pre-tokenizer": [{ pre_tokenizer: { ...pattern("a"), limit: 3 } }, "limit"],
  "a place in normalized text": [{ normalizer: { type: "NFC" }, pre_tokenizer: metaspace }, "prepend_scheme"],
  "a kind of post-processor": [{ post_processor: { type: "Masking" } }, "Masking"],
  "a kind of decoder": [{ decoder: { type: "CTC" } }, "CTC"],
  "a decoder within a sequence": [{ decoder: { type: "Sequence", decoders: [{ type: "WordPiece" }] } }, "WordPiece"],
  "a flag of an added token": [
    { added_tokens: [{ id: 900, content: "<x>", special: true, invisible: true }] },
    "invisible",
  ],
  "an id that the library would not give": [{ added_tokens: [{ id: 950, content: "<x>", special: true }] }, "950"],
  "two added tokens for one text": [
    {
      normalizer: { type: "NFC" },
      added_tokens: [
        { id: 900, content: "\u1e9b\u0323", normalized: true },
        { id: 901, content: "\u017f\u0323\u0307", normalized: true },
      ],
    },
    "same text",
  ],
}

const modelChanges: Record<string, [change: object, named: string]> = {
  "random merges": [{ dropout: 0.1 }, "dropout"],
  "a key of the model": [{ cache: 1 }, "cache"],
  "another kind of model": [{ type: "Unigram" }, "Unigram"],
  "a merge of unknown tokens": [{ merges: ["漢 字"] }, "漢"],
  "a malformed merge": [{ merges: ["a b c"] }, "a b c"],
  "two tokens of one id": [{ vocab: { a: 0, b: 0 }, merges: [] }, "same id"],
}

const patterns: readonly (readonly [pattern: string, named: string])[] = [
  ["a*", "match of nothing"],
  ["(a)\\1", "\\1"],
  ["\\bword", "\\b"],
  ["\\p{Han}+", "Han"],
  ["[[:alpha:]]", "[:"],
  ["(?i:ß)", "ß"],
  ["(?i:ss)", "ss"],
  ["(?i:\\p{Lu})", "\\p{Lu}"],
  ["(?<name>a)", "(?<"],
  ["(?x: a)", "(?x"],
  ["(?:a?)+", "nothing"],
  ["a{2}?", "{2}?"],
  ["a**", "repetition of a repetition"],
  ["(a", "without its end"],
  ["a)", "too many"],
]

const configs: Record<string, object> = {
  split_special_tokens: { split_special_tokens: true },
  do_lower_case: { do_lower_case: true },
  strip_accents: { strip_accents: true },
  add_prefix_space: { add_prefix_space: true },
  pad_token: { pad_token: "[PAD]" },
  additional_special_tokens: { additional_special_tokens: ["<extra>"] },
  added_tokens_decoder: { added_tokens_decoder: { 7: { content: "<|im_end|>", special: true } } },
}

function refusal(json: object, config: object = {}): { code?: string; message: string } {
  try {
    openBpe(json as never, config as never, "tokenizer.json")
  } catch (error) {
    return error as Error
  }
  return { message: "opened" }
}

describe("rejects by name what is not known exactly", () => {
  const expectNamed = (json: object, named: string, config?: object) => {
    const { code, message } = refusal(json, config)
    expect(code).toBe("BAD_TOKENIZER")
    expect(message).toContain(named)
  }

  it.each(Object.entries(changes))("%s", (_, [change, named]) =>
    expectNamed({ ...tokenizerJson("gpt2, bytes"), ...change }, named),
  )

  it.each(Object.entries(modelChanges))("%s", (_, [change, named]) => {
    const json = tokenizerJson("gpt2, bytes")
    expectNamed({ ...json, model: { ...json.model, ...change } }, named)
  })

  it.each(patterns)("the pattern %s", (source, named) =>
    expectNamed({ ...tokenizerJson("gpt2, bytes"), pre_tokenizer: pattern(source) }, named),
  )

  it.each(Object.entries(configs))("%s of tokenizer_config.json", (key, config) =>
    expectNamed(tokenizerJson("llama3, bytes"), key === "added_tokens_decoder" ? "the id 7" : key, config),
  )
})
