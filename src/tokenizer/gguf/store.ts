import { join } from "node:path"
import type { TypedValue } from "../../model-files/gguf/write.ts"
import { GigpoError } from "../../util/errors.ts"
import { isObject, type JsonObject, readJson, sizeLimits } from "../files.ts"
import { specialTokens } from "../special-tokens.ts"
import { readTemplates } from "../template-files.ts"
import { checkTokenizerJson, idsOf, type TokenizerJson } from "../tokenizer-json.ts"
import { type NamedPreTokenizer, preTokenizers } from "./pre-tokenizers.ts"
import { storeSentencePiece } from "./store-sentencepiece.ts"

const text = (value: string): TypedValue => ({ type: "string", value })
const kinds = { normal: 1, control: 3, userDefined: 4, unused: 5 } as const

/**
 * Returns the metadata of a GGUF file for the tokenizer in a Hugging Face folder.
 *
 * @param rows - number of the model's embeddings; rows without a token get unused tokens.
 * @param eosTokens - ids that end a completion, the `eos_token` of the tokenizer first.
 * @throws GigpoError `BAD_TOKENIZER` for a pre-tokenizer without a name in llama.cpp.
 */
export async function storeTokenizer(
  directory: string,
  rows: number,
  eosTokens: readonly number[],
): Promise<Map<string, TypedValue>> {
  const path = join(directory, "tokenizer.json")
  const json = await readJson(path, sizeLimits.tokenizer)
  checkTokenizerJson(json, path)
  const config = await readJson(join(directory, "tokenizer_config.json"), sizeLimits.config)
  const ids = idsOf(json)
  const key = (name: string) => `tokenizer.ggml.${name}`
  const vocabulary = storeSentencePiece(json, rows, path) ?? storeByteLevel(json, rows, path)
  const metadata = new Map<string, TypedValue>([...vocabulary].map(([name, value]) => [key(name), value]))
  const role = (name: string) => ids.get(specialTokens(config)[name] ?? "")
  const set = (name: string, id: number | undefined) =>
    id !== undefined && metadata.set(key(name), { type: "uint32", value: id })
  const eos = role("eos_token") ?? eosTokens[0]
  set("bos_token_id", role("bos_token"))
  set("eos_token_id", eos)
  set(
    "eot_token_id",
    eosTokens.find((id) => id !== eos),
  )
  set("unknown_token_id", role("unk_token"))
  set("padding_token_id", role("pad_token"))
  metadata.set(key("add_bos_token"), { type: "bool", value: config.add_bos_token === true })
  for (const [name, { source }] of await readTemplates(directory, config))
    metadata.set(`tokenizer.chat_template${name === "default" ? "" : `.${name}`}`, text(source))
  return metadata
}

/** Returns the vocabulary of a byte-level tokenizer, by keys without `tokenizer.ggml.`. */
function storeByteLevel(json: TokenizerJson, rows: number, path: string): ReadonlyMap<string, TypedValue> {
  const pre = nameOf(json, path)
  const tokens = Array.from({ length: rows }, (_, id) => `[PAD${id}]`)
  const types: number[] = tokens.map(() => kinds.unused)
  for (const [token, id] of idsOf(json)) {
    tokens[id] = token
    types[id] = kinds.normal
  }
  for (const { id, special } of json.added_tokens) types[id] = special ? kinds.control : kinds.userDefined
  return new Map<string, TypedValue>([
    ["model", text("gpt2")],
    ["pre", text(pre)],
    ["tokens", { type: "strings", value: tokens }],
    ["token_type", { type: "int32s", value: types }],
    ["merges", { type: "strings", value: mergesOf(json) }],
  ])
}

function mergesOf({ model }: TokenizerJson): string[] {
  return model.merges.map((merge) => (Array.isArray(merge) ? merge.join(" ") : String(merge)))
}

/** Returns the name of the pre-tokenizer in llama.cpp. */
function nameOf(json: TokenizerJson, path: string): string {
  const shown = comparable(json)
  for (const [name, one] of preTokenizers) if (comparable({ ...one, model: one }) === shown) return name
  throw new GigpoError(
    "BAD_TOKENIZER",
    `${path} has a pre-tokenizer without a name in llama.cpp, so the model cannot be exported as GGUF. Supported are ` +
      `${[...preTokenizers.keys()].join(", ")}. Models created by gigpo init have a custom tokenizer; start from a pretrained model.`,
  )
}

/** Returns the settings that determine how text is split, as comparable JSON. Settings that change only offsets are left out. */
function comparable(json: JsonObject | (NamedPreTokenizer & { readonly model: object })): string {
  const { normalizer, pre_tokenizer, model } = json as JsonObject
  const { ignore_merges = false } = model as { ignore_merges?: boolean }
  const plain = (_: string, value: unknown) => {
    if (!isObject(value)) return value
    const { trim_offsets: _offsets, invert: _invert, ...rest } = value as Record<string, unknown>
    return Object.fromEntries(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)))
  }
  return JSON.stringify([normalizer ?? null, pre_tokenizer, ignore_merges], plain)
}
