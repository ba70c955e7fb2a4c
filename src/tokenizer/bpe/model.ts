import type { Pieces } from "../../util/pace.ts"
import { isObject } from "../files.ts"
import { TooManyTokens } from "../too-many-tokens.ts"
import {
  isBoolean,
  isList,
  isNull,
  isString,
  oneOf,
  optional,
  readFields,
  show,
  Unsupported,
  unsupportedKind,
} from "./fields.ts"
import { Merges, mergeAll } from "./merge.ts"

/** Byte-pair encoding of one pre-token. */
export interface Model {
  readonly vocabulary: ReadonlyMap<string, number>
  /**
   * Encodes a pre-token to ids.
   *
   * @throws TooManyTokens if there are certainly more than `most` tokens, before any merge
   */
  encode(piece: string, most: number): Pieces<readonly number[]>
}

const isAny = (_value: unknown): _value is unknown => true
const isZero = (value: unknown): value is 0 => value === 0

/** BPE model of tokenizer.json. Throws Unsupported for another type or an unsupported option. */
export function createModel(json: unknown): Model {
  // Files of early versions have no type; only BPE has merges.
  if (!isObject(json) || (!(json.type === undefined && "merges" in json) && json.type !== "BPE"))
    throw unsupportedKind(json, "model")
  const fields = readFields(json, "the model", {
    type: optional(oneOf("BPE")),
    // Dropout skips random merges, so the ids of a text would vary.
    dropout: (value: unknown): value is 0 | null | undefined => value === undefined || isNull(value) || isZero(value),
    unk_token: optional(isString),
    continuing_subword_prefix: optional(isString),
    end_of_word_suffix: optional(isString),
    fuse_unk: optional(isBoolean),
    byte_fallback: optional(isBoolean),
    ignore_merges: optional(isBoolean),
    vocab: isAny,
    merges: isList,
  })
  const vocabulary = readVocabulary(fields.vocab as Readonly<Record<string, number>>)
  const prefix = fields.continuing_subword_prefix ?? ""
  const suffix = fields.end_of_word_suffix ?? ""
  const merges = readMerges(fields.merges, vocabulary, prefix)
  const unknown = fields.unk_token == null ? undefined : vocabulary.get(fields.unk_token)
  const toBytes = fields.byte_fallback ? createByteFallback(vocabulary) : () => undefined

  const longest = longestKey(vocabulary)

  const encode = function* (piece: string, most: number): Pieces<readonly number[]> {
    const whole = fields.ignore_merges ? vocabulary.get(piece) : undefined
    if (whole !== undefined) return [whole]
    const ids: number[] = []
    let pendingUnknown = false
    let place = 0
    let at = 0
    for (const character of piece) {
      at += character.length
      const start = place === 0 ? character : prefix + character
      const symbol = at === piece.length ? start + suffix : start
      if (++place % charactersPerPiece === 0) yield
      const id = vocabulary.get(symbol)
      const bytes = id === undefined ? toBytes(symbol) : undefined
      if (id !== undefined) {
        if (pendingUnknown) ids.push(unknown!)
        pendingUnknown = false
        ids.push(id)
      } else if (bytes) ids.push(...bytes)
      else if (unknown !== undefined) {
        if (pendingUnknown && !fields.fuse_unk) ids.push(unknown)
        pendingUnknown = true
      }
    }
    if (pendingUnknown) ids.push(unknown!)
    if (ids.length > most * longest) throw new TooManyTokens(most)
    yield* mergeAll(ids, merges)
    return ids
  }
  return { vocabulary, encode }
}

/** Number of characters of a pre-token between two possible pauses. */
const charactersPerPiece = 1024

/** Length of the longest token in UTF-16 units, an upper bound of the number of symbols that merge into one token. */
function longestKey(vocabulary: ReadonlyMap<string, number>): number {
  let longest = 1
  for (const token of vocabulary.keys()) longest = Math.max(longest, token.length)
  return longest
}

function readVocabulary(vocab: Readonly<Record<string, number>>): Map<string, number> {
  const vocabulary = new Map(Object.entries(vocab))
  if (new Set(vocabulary.values()).size === vocabulary.size) return vocabulary
  const seen = new Map<number, string>()
  for (const [token, id] of vocabulary) {
    const other = seen.get(id)
    if (other !== undefined)
      throw new Unsupported(`gives the tokens ${show(other)} and ${show(token)} the same id ${id}`)
    seen.set(id, token)
  }
  return vocabulary
}

function readMerges(merges: readonly unknown[], vocabulary: ReadonlyMap<string, number>, prefix: string): Merges {
  const idOf = (token: string, merge: unknown): number => {
    const id = vocabulary.get(token)
    if (id === undefined) throw new Unsupported(`has the merge ${show(merge)}, but no id for ${show(token)}`)
    return id
  }
  const asTexts = merges.every(isString)
  const pairs = asTexts ? merges.filter((merge) => !merge.startsWith("#version")) : merges
  return new Merges(
    pairs.map((merge) => {
      const pair = asTexts ? (merge as string).split(" ") : merge
      if (!Array.isArray(pair) || pair.length !== 2 || !pair.every(isString))
        throw new Unsupported(`has a malformed merge: ${show(merge)}`)
      const [left, right] = pair as [string, string]
      const merged = left + right.slice(prefix.length)
      return [idOf(left, merge), idOf(right, merge), idOf(merged, merge)] as const
    }),
  )
}

/** Ids of the byte tokens `<0x00>` … of a symbol; undefined if one is missing. */
function createByteFallback(
  vocabulary: ReadonlyMap<string, number>,
): (symbol: string) => readonly number[] | undefined {
  const idOf = Array.from({ length: 256 }, (_, byte) =>
    vocabulary.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
  )
  const encoder = new TextEncoder()
  return (symbol) => {
    const ids = Array.from(encoder.encode(symbol), (byte) => idOf[byte])
    return ids.every((id) => id !== undefined) ? ids : undefined
  }
}
