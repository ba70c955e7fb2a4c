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
  const { vocab } = json.model
  const texts = new Map(json.added_tokens.map(({ id, content, special }) => [id, Buffer.from(special ? "" : content)]))
  const offsets = new Int32Array(size + 1)
  // Every byte is written as one character.
  for (const token in vocab) offsets[vocab[token]! + 1] = decodes(token) ? token.length : 0
  for (const [id, { length }] of texts) offsets[id + 1] = length
  for (let id = 0; id < size; id++) offsets[id + 1]! += offsets[id]!
  const bytes = new Uint8Array(offsets[size]!)
  for (const token in vocab) {
    const [id, at] = [vocab[token]!, offsets[vocab[token]!]!]
    if (offsets[id + 1] === at || texts.has(id)) continue
    for (let place = 0; place < token.length; place++) bytes[at + place] = byteOf[token.charCodeAt(place)]!
  }
  for (const [id, text] of texts) bytes.set(text, offsets[id]!)
  return { bytes, offsets, ends: Int32Array.from(ends) }
}

/** [codes of characters] The byte that each is written for; -1 where it is none. */
const byteOf: Int16Array = new Int16Array(0x200).fill(-1)
for (const [byte, character] of byteCharacters.entries()) byteOf[character.charCodeAt(0)] = byte

/** Whether this tokenizer makes a text of it. */
function decodes(token: string): boolean {
  for (let place = 0; place < token.length; place++) if ((byteOf[token.charCodeAt(place)] ?? -1) < 0) return false
  return true
}

function isByteLevel(decoder: unknown): boolean {
  if (!isObject(decoder)) return false
  const { type, decoders } = decoder as JsonObject
  return type === "ByteLevel" || (Array.isArray(decoders) && decoders.some(isByteLevel))
}
