import type { TypedValue } from "../../model-files/gguf/write.ts"
import { GigpoError } from "../../util/errors.ts"
import { idsOf, type TokenizerJson } from "../tokenizer-json.ts"
import { mergesOf } from "./sentencepiece.ts"

const kinds = { normal: 1, control: 3, userDefined: 4, unused: 5, byte: 6 } as const

/**
 * Returns the vocabulary of a SentencePiece BPE tokenizer as metadata of a GGUF file, by keys without `tokenizer.ggml.`; undefined where
 * tokenizer.json describes another kind. GGUF files have scores instead of merges: the earlier a token is merged, the higher is its score.
 *
 * @param rows - number of the model's embeddings; rows without a token get unused tokens.
 * @throws GigpoError `BAD_TOKENIZER` if the order of the merges follows from no scores.
 */
export function storeSentencePiece(
  json: TokenizerJson,
  rows: number,
  path: string,
): ReadonlyMap<string, TypedValue> | undefined {
  const prefix = spacePrefix(json)
  if (prefix === undefined) return undefined
  const { tokens, types } = vocabularyOf(json, rows)
  const skipped = new Set([...types.keys()].filter((id) => types[id] !== kinds.normal))
  const usable = usableMerges(json, tokens, skipped)
  const scores = scoresOf(usable, tokens)
  const found = mergesOf(tokens, scores, skipped)
  if (
    found.length !== usable.length ||
    found.some(([left, right], i) => left !== usable[i]![0] || right !== usable[i]![1])
  )
    throw new GigpoError(
      "BAD_TOKENIZER",
      `${path} has merges in an order that follows from no scores of the tokens, so the model cannot be exported as GGUF.`,
    )
  return new Map<string, TypedValue>([
    ["model", { type: "string", value: "llama" }],
    ["pre", { type: "string", value: "default" }],
    ["tokens", { type: "strings", value: tokens }],
    ["scores", { type: "float32s", value: scores }],
    ["token_type", { type: "int32s", value: types }],
    ["add_space_prefix", { type: "bool", value: prefix }],
  ])
}

/** Whether a space is added before a text; undefined if spaces are not written as ▁, or text is split in another way before merging. */
function spacePrefix({ normalizer, pre_tokenizer: split }: TokenizerJson): boolean | undefined {
  const spaces = { type: "Replace", pattern: { String: " " }, content: "▁" }
  const isSame = (one: unknown, other: object) => JSON.stringify(one) === JSON.stringify(other)
  // A split at spaces, as in Gemma's files, finds none after the normalizer.
  const splitsNothing = (split ?? null) === null || isSame((split as Json).pattern, { String: " " })
  if (!splitsNothing) return undefined
  if (isSame(normalizer, spaces)) return false
  const both = { type: "Sequence", normalizers: [{ type: "Prepend", prepend: "▁" }, spaces] }
  return isSame(normalizer, both) ? true : undefined
}

type Json = Readonly<Record<string, unknown>>

/** Returns tokens and kinds. User-defined tokens have spaces instead of ▁, as llama.cpp finds them in a text before that is normalized. */
function vocabularyOf(json: TokenizerJson, rows: number): { tokens: string[]; types: number[] } {
  const tokens = Array.from({ length: rows }, (_, id) => `[PAD${id}]`)
  const types: number[] = tokens.map(() => kinds.unused)
  const bytes = (json.model as Json).byte_fallback === true
  for (const [token, id] of idsOf(json)) {
    if (types[id] === kinds.byte) continue
    tokens[id] = token
    types[id] = bytes && /^<0x[0-9A-F]{2}>$/.test(token) ? kinds.byte : kinds.normal
  }
  for (const { id, content, special } of json.added_tokens) {
    types[id] = special ? kinds.control : kinds.userDefined
    tokens[id] = special ? content : content.replaceAll("▁", " ")
  }
  return { tokens, types }
}

/** Returns the merges of normal tokens. User-defined tokens are found before merging, and are not parts of others. */
function usableMerges(
  json: TokenizerJson,
  tokens: readonly string[],
  skipped: ReadonlySet<number>,
): [string, string][] {
  const normal = new Set(tokens.filter((_, id) => !skipped.has(id)))
  const merges = json.model.merges.map((merge): [string, string] => {
    const [left = "", right = ""] = Array.isArray(merge) ? merge.map(String) : String(merge).split(" ")
    return [left, right]
  })
  return merges.filter(([left, right]) => [left, right, left + right].every((token) => normal.has(token)))
}

/** Returns scores from 0 downwards in the order of the merges. Tokens whose merges are between one another have the same score. */
function scoresOf(merges: readonly (readonly [string, string])[], tokens: readonly string[]): number[] {
  const last = new Map(merges.map(([left, right], i) => [left + right, i]))
  const scores = new Map<string, number>()
  let [score, end] = [1, -1]
  for (const [i, [left, right]] of merges.entries()) {
    if (i > end) score--
    end = Math.max(end, last.get(left + right)!)
    scores.set(left + right, score)
  }
  return tokens.map((token) => scores.get(token) ?? --score)
}
