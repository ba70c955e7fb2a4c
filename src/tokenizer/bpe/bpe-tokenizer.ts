import { atOnce, type Pieces } from "../../util/pace.ts"
import type { EncodeOptions } from "../encoder.ts"
import type { JsonObject } from "../files.ts"
import { TooManyTokens } from "../too-many-tokens.ts"
import { type AddedToken, AddedTokens } from "./added-tokens.ts"
import { createDecoder, type Decoder } from "./decoder.ts"
import type { Model } from "./model.ts"
import { createNormalizer, type Normalizer } from "./normalizer.ts"
import { createPieceEncoder, type PieceEncoder } from "./piece-encoder.ts"
import { createPreTokenizer } from "./pre-tokenizer.ts"

/** Between two places at which the work can pause. */
const partsPerPiece = 256

/** Text without the added tokens that are looked for in text as it is. */
interface RawPart {
  readonly raw: string
  /** Whether it begins the whole text. */
  readonly first: boolean
  /** Ascending indices. */
  readonly literal: readonly number[]
}

const loneSurrogate = /\p{Surrogate}/gu

/**
 * Text to ids and back as tokenizer.json says, with the ids of the Rust library `tokenizers`. The constructor fails with Unsupported
 * where some part of the file is not known exactly.
 */
export class BpeTokenizer {
  readonly #model: Model
  readonly #normalizer: Normalizer | undefined
  readonly #appendPieces: PieceEncoder
  readonly #decode: Decoder
  readonly addedTokens: readonly AddedToken[]
  /** Looked for in the text as it is, and in the normalized text. */
  readonly #raw: AddedTokens
  readonly #normalized: AddedTokens
  readonly #added: ReadonlyMap<number, AddedToken>
  /** By id, as decoders take them. */
  readonly #texts: ReadonlyMap<number, string>

  constructor(json: JsonObject, model: Model, added: readonly AddedToken[]) {
    this.#model = model
    this.#normalizer = createNormalizer(json.normalizer)
    this.#appendPieces = createPieceEncoder(
      createPreTokenizer(json.pre_tokenizer, this.#normalizer !== undefined),
      this.#model,
    )
    this.#decode = createDecoder(json.decoder)
    this.addedTokens = added
    this.#raw = new AddedTokens(
      added.filter(({ normalized }) => !normalized),
      undefined,
    )
    this.#normalized = new AddedTokens(
      added.filter(({ normalized }) => normalized),
      this.#normalizer,
    )
    this.#added = new Map(added.map((token) => [token.id, token]))
    const decoded = ({ normalized, content }: AddedToken) => (normalized && this.#normalizer?.apply(content)) || content
    this.#texts = new Map([
      ...[...this.#model.vocabulary].map(([token, id]) => [id, token] as const),
      ...added.map((token) => [token.id, decoded(token)] as const),
    ])
  }

  /**
   * Text to ids. No special tokens are added, but added tokens in the text are read, except those that would begin at one of the
   * UTF-16 indices in `literal`: that text is encoded as text. A lone surrogate counts as U+FFFD.
   */
  encode(text: string, literal?: ReadonlySet<number>): Int32Array {
    return atOnce(this.encodeInPieces(text, { literal }))
  }

  /**
   * The same in pieces of a millisecond or so.
   *
   * @throws TooManyTokens as soon as it is certain that there are more than `most` ids; default: any number
   */
  *encodeInPieces(text: string, { literal, most = Number.POSITIVE_INFINITY }: EncodeOptions = {}): Pieces<Int32Array> {
    const ids: number[] = []
    const wellFormed = text.replace(loneSurrogate, "\ufffd")
    const places = [...(literal ?? [])].sort((a, b) => a - b)
    let next = 0
    const parts = yield* this.#raw.split(wellFormed, (index) => literal?.has(index) ?? false)
    for (const [index, { from, end, id }] of parts.entries()) {
      if (index % partsPerPiece === partsPerPiece - 1) yield
      if (id === undefined) {
        const inside: number[] = []
        for (; next < places.length && places[next]! < end; next++)
          if (places[next]! >= from) inside.push(places[next]! - from)
        yield* this.#encodeRaw({ raw: wellFormed.slice(from, end), first: from === 0, literal: inside }, ids, most)
      } else ids.push(id)
      if (ids.length > most) throw new TooManyTokens(most)
    }
    return Int32Array.from(ids)
  }

  *#encodeRaw({ raw, first, literal }: RawPart, ids: number[], most: number): Pieces<void> {
    const text = this.#normalizer?.apply(raw) ?? raw
    const kept = new Set(literal.length > 0 ? (this.#normalizer?.move(raw, literal) ?? literal) : [])
    for (const { from, end, id } of yield* this.#normalized.split(text, (index) => kept.has(index))) {
      if (id === undefined) yield* this.#appendPieces(text.slice(from, end), first && from === 0, ids, most)
      else ids.push(id)
    }
  }

  /** Ids to text; ids without a token give nothing. */
  decode(ids: ArrayLike<number>, skipSpecial: boolean): string {
    const texts: string[] = []
    for (let place = 0; place < ids.length; place++) {
      const text = this.#texts.get(ids[place]!)
      if (text !== undefined && !(skipSpecial && this.#added.get(ids[place]!)?.special)) texts.push(text)
    }
    return texts.length === 0 ? "" : this.#decode(texts).join("")
  }

  tokenToId(token: string): number | undefined {
    for (const { content, id } of this.#added.values()) if (content === token) return id
    return this.#model.vocabulary.get(token)
  }

  has(id: number): boolean {
    return this.#texts.has(id)
  }
}
