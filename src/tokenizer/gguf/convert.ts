import { endTokens } from "../../model-files/gguf/end-tokens.ts"
import type { GgufValue } from "../../model-files/gguf/metadata.ts"
import { GigpoError } from "../../util/errors.ts"
import type { JsonObject } from "../files.ts"
import { preTokenizers } from "./pre-tokenizers.ts"
import { mergesOf } from "./sentencepiece.ts"

/** Files of a Hugging Face tokenizer by name. */
export type TokenizerTexts = Readonly<Record<string, string>>

/** Kinds of tokens in `tokenizer.ggml.token_type`. */
const kinds = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const

/** Tokenizer of a GGUF file as it is stored. */
interface Stored {
  readonly tokens: readonly string[]
  readonly types: readonly number[]
  readonly get: (key: string) => GgufValue | undefined
  readonly fail: (what: string) => GigpoError
}

/**
 * Converts the tokenizer in the metadata of a GGUF file to the files of a Hugging Face tokenizer: tokenizer.json,
 * tokenizer_config.json, generation_config.json and the chat templates.
 *
 * @throws GigpoError `BAD_TOKENIZER` for an unsupported tokenizer or pre-tokenizer, and for missing or inconsistent lists
 */
export function convertTokenizer(metadata: ReadonlyMap<string, GgufValue>, file: string): TokenizerTexts {
  const fail = (what: string) => new GigpoError("BAD_TOKENIZER", `${file} ${what}.`)
  const get = (key: string) => metadata.get(`tokenizer.ggml.${key}`)
  const tokens = strings(get("tokens"))
  if (!tokens) throw fail("has no list of tokens (tokenizer.ggml.tokens)")
  const types = numbers(get("token_type")) ?? tokens.map(() => kinds.normal)
  if (types.length !== tokens.length) throw fail(`has ${tokens.length} tokens but ${types.length} token types`)
  const stored = { tokens, types, get, fail }
  const model = get("model")
  if (model !== "gpt2" && model !== "llama")
    throw fail(
      `has a tokenizer of the type ${JSON.stringify(model)}; supported are gpt2 (byte-level BPE) and llama (SentencePiece BPE)`,
    )
  const parts = model === "gpt2" ? byteLevel(stored) : sentencePiece(stored)
  const tokenizer = { version: "1.0", truncation: null, padding: null, added_tokens: addedTokens(stored), ...parts }
  return {
    "tokenizer.json": JSON.stringify(tokenizer),
    "tokenizer_config.json": JSON.stringify(config(stored), null, 2),
    "generation_config.json": JSON.stringify(generation(stored, endTokens(metadata)), null, 2),
    ...templates(metadata, fail),
  }
}

function byteLevel({ tokens, get, fail }: Stored): JsonObject {
  const name = get("pre")
  const named = typeof name === "string" ? preTokenizers.get(name) : undefined
  if (!named)
    throw fail(
      `has ${name === undefined ? "no pre-tokenizer" : `the pre-tokenizer ${JSON.stringify(name)}`} (tokenizer.ggml.pre); supported are ` +
        `${[...preTokenizers.keys()].join(", ")}. Use the model's Hugging Face folder`,
    )
  const merges = strings(get("merges"))
  if (!merges) throw fail("has no merges (tokenizer.ggml.merges)")
  const { normalizer, pre_tokenizer, ignore_merges } = named
  return {
    normalizer,
    pre_tokenizer,
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: bpe(tokens, merges.map(pairOf), { unk_token: null, fuse_unk: false, byte_fallback: false, ignore_merges }),
  }
}

/** A merge is two tokens with a space between them; neither contains one, since byte-level BPE writes a space as Ġ. */
function pairOf(merge: string): [string, string] {
  const at = merge.indexOf(" ", 1)
  return [merge.slice(0, at), merge.slice(at + 1)]
}

function sentencePiece({ tokens, types, get, fail }: Stored): JsonObject {
  const scores = numbers(get("scores"))
  if (scores?.length !== tokens.length) throw fail("has no score for each token (tokenizer.ggml.scores)")
  const unknown = get("unknown_token_id")
  const prefix = get("add_space_prefix") !== false
  const other: readonly number[] = [kinds.control, kinds.unknown, kinds.byte, kinds.unused, kinds.userDefined]
  const skipped = new Set([...types.keys()].filter((id) => other.includes(types[id]!)))
  const spaces = { type: "Replace", pattern: { String: " " }, content: "▁" }
  return {
    normalizer: prefix ? { type: "Sequence", normalizers: [{ type: "Prepend", prepend: "▁" }, spaces] } : spaces,
    pre_tokenizer: null,
    post_processor: null,
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: "▁" }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
        ...(prefix ? [{ type: "Strip", content: " ", start: 1, stop: 0 }] : []),
      ],
    },
    model: bpe(tokens, mergesOf(tokens, scores, skipped), {
      unk_token: typeof unknown === "number" ? (tokens[unknown] ?? null) : null,
      fuse_unk: true,
      byte_fallback: types.includes(kinds.byte),
      ignore_merges: false,
    }),
  }
}

function bpe(tokens: readonly string[], merges: readonly [string, string][], options: JsonObject): JsonObject {
  const shared = { type: "BPE", dropout: null, continuing_subword_prefix: null, end_of_word_suffix: null }
  // Converters pad a vocabulary with rows of this name, which are not tokens.
  const entries = [...tokens.entries()].filter(([id, token]) => token !== `[PAD${id}]`)
  return { ...shared, ...options, vocab: Object.fromEntries(entries.map(([id, token]) => [token, id])), merges }
}

/** Returns the tokens that are matched in a text before the pre-tokenizer. Control tokens are special: `skipSpecial` leaves them out. */
function addedTokens({ tokens, types }: Stored): object[] {
  const added: readonly number[] = [kinds.control, kinds.userDefined, kinds.unknown]
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false }
  return [...tokens.keys()]
    .filter((id) => added.includes(types[id]!) && tokens[id] !== "")
    .map((id) => ({ id, content: tokens[id], ...flags, special: types[id] !== kinds.userDefined }))
}

function config({ tokens, get }: Stored): JsonObject {
  const token = (role: string) => {
    const id = get(`${role}_token_id`)
    return typeof id === "number" ? tokens[id] : undefined
  }
  return {
    tokenizer_class: "PreTrainedTokenizerFast",
    bos_token: token("bos"),
    eos_token: token("eos"),
    unk_token: token("unknown"),
    pad_token: token("padding"),
    add_bos_token: get("add_bos_token"),
    add_eos_token: get("add_eos_token"),
    clean_up_tokenization_spaces: false,
  }
}

/** Returns generation_config.json. Tokens for end of text, of a turn and of a message with tool calls end a completion. */
function generation({ get }: Stored, ends: readonly number[]): JsonObject {
  return { bos_token_id: get("bos_token_id"), eos_token_id: ends, pad_token_id: get("padding_token_id") }
}

/** Returns the chat templates. The default is `tokenizer.chat_template`; named ones are `tokenizer.chat_template.NAME`. */
function templates(metadata: ReadonlyMap<string, GgufValue>, fail: Stored["fail"]): TokenizerTexts {
  const start = "tokenizer.chat_template"
  const found: Record<string, string> = {}
  for (const [key, text] of metadata) {
    if (key !== start && !key.startsWith(`${start}.`)) continue
    const name = key.slice(start.length + 1)
    if (typeof text !== "string") throw fail(`has a chat template that is not a string (${key})`)
    if (name !== "" && !/^[\w-]{1,64}$/.test(name))
      throw fail(`has a chat template with the invalid name ${JSON.stringify(name)}`)
    found[name === "" ? "chat_template.jinja" : `additional_chat_templates/${name}.jinja`] = text
  }
  return found
}

function strings(value: GgufValue | undefined): readonly string[] | undefined {
  return Array.isArray(value) && value.every((one) => typeof one === "string") ? value : undefined
}

function numbers(value: GgufValue | undefined): readonly number[] | undefined {
  return Array.isArray(value) && value.every((one) => typeof one === "number") ? value : undefined
}
