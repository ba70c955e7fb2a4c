import { byteCharacters } from "./byte-level.ts"
import { badTokenizer, isObject, type JsonObject } from "./files.ts"
import type { TokenizerJson } from "./tokenizer-json.ts"

/** What text each token stands for. Token i is bytes[offsets[i] … offsets[i + 1]): none, where it stands for no text. */
export interface TokenBytes {
  readonly bytes: Uint8Array
  /** [tokens + 1] */
  readonly offsets: Int32Array
  /** Tokens that end a reply. */
  readonly ends: Int32Array
}

/**
 * Of a byte-level vocabulary, whose tokens are written as one character a byte. Added tokens stand for their own text, special ones
 * for none.
 *
 * @param size tokens of the model, which may be more than the tokenizer's: the rest stand for nothing
 */
export function tokenBytes(json: TokenizerJson, ends: readonly number[], size: number, path: string): TokenBytes {
  if (!isByteLevel(json.decoder))
    throw badTokenizer(path, "is not byte-level, so that it cannot be told which bytes its tokens stand for")
  const byteOf = new Map(byteCharacters.map((character, byte) => [character, byte]))
  const of: (readonly number[])[] = Array.from({ length: size }, () => [])
  for (const [token, id] of Object.entries(json.model.vocab))
    of[id] = Array.from(token, (character) => byteOf.get(character) ?? Number.NaN)
  for (const { id, content, special } of json.added_tokens) of[id] = special ? [] : [...Buffer.from(content)]
  for (const [id, bytes] of of.entries()) if (bytes.some(Number.isNaN)) of[id] = [] // no text that this tokenizer decodes
  const offsets = new Int32Array(size + 1)
  for (let id = 0; id < size; id++) offsets[id + 1] = offsets[id]! + of[id]!.length
  const bytes = new Uint8Array(offsets[size]!)
  for (let id = 0; id < size; id++) bytes.set(of[id]!, offsets[id]!)
  return { bytes, offsets, ends: Int32Array.from(ends) }
}

function isByteLevel(decoder: unknown): boolean {
  if (!isObject(decoder)) return false
  const { type, decoders } = decoder as JsonObject
  return type === "ByteLevel" || (Array.isArray(decoders) && decoders.some(isByteLevel))
}
