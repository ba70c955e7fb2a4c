import { fromByteCharacters } from "./bpe/byte-characters.ts"
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
  const bytesOf = new Map<number, Uint8Array>()
  for (const token in vocab) bytesOf.set(vocab[token]!, fromByteCharacters(token) ?? noBytes)
  for (const { id, content, special } of json.added_tokens) bytesOf.set(id, Buffer.from(special ? "" : content))
  const offsets = new Int32Array(size + 1)
  for (let id = 0; id < size; id++) offsets[id + 1] = offsets[id]! + (bytesOf.get(id)?.length ?? 0)
  const bytes = new Uint8Array(offsets[size]!)
  for (const [id, own] of bytesOf) bytes.set(own, offsets[id]!)
  return { bytes, offsets, ends: Int32Array.from(ends) }
}

const noBytes = new Uint8Array()

/** Whether the bytes of a text are those of its tokens in order: other decoders take away or put in some. */
function isByteLevel(decoder: unknown): boolean {
  if (!isObject(decoder)) return false
  const { type, decoders } = decoder as JsonObject
  const [first, ...rest] = Array.isArray(decoders) ? decoders : []
  return type === "ByteLevel" || (isByteLevel(first) && rest.every((step) => isObject(step) && step.type === "Fuse"))
}
