import type { Pieces } from "../../util/pace.ts"
import { TooManyTokens } from "../too-many-tokens.ts"
import type { Model } from "./model.ts"
import type { PreTokenizerStep } from "./pre-tokenizer.ts"

/**
 * Function that appends the ids of a normalized text without added tokens. `first`: whether the text is at the beginning of the whole text.
 *
 * @throws TooManyTokens for more than `most` ids
 */
export type PieceEncoder = (text: string, first: boolean, ids: number[], most: number) => Pieces<void>

/** Maximum length of cached pieces; longer ones are rare and seldom repeated. */
const longestCached = 64
const mostCached = 2 ** 16
/** Number of pre-tokens between two possible pauses. */
const perPiece = 256

/** Cache of ids by text. */
class Cache {
  readonly #ids = new Map<string, readonly number[]>()

  get(text: string): readonly number[] | undefined {
    return this.#ids.get(text)
  }

  add(text: string, ids: readonly number[]): void {
    if (this.#ids.size >= mostCached) this.#ids.clear()
    if (text.length <= longestCached) this.#ids.set(text, ids)
  }
}

/**
 * Combines pre-tokenizer and model. After the first step of the pre-tokenizer, the ids of a piece depend only on the piece, so they are
 * cached. The piece at the beginning of the text may differ.
 */
export function createPieceEncoder([cut, ...steps]: readonly PreTokenizerStep[], model: Model): PieceEncoder {
  const cutOff = new Cache()
  const merged = new Cache()

  const cutFurther = function* (piece: string, first: boolean): Pieces<readonly string[]> {
    let pieces: readonly string[] = [piece]
    for (const step of steps) {
      const parts: string[] = []
      for (const [index, part] of pieces.entries())
        for (const smaller of yield* step(part, first && index === 0)) if (smaller !== "") parts.push(smaller)
      pieces = parts
    }
    return pieces
  }
  const encode = function* (piece: string, first: boolean, most: number): Pieces<readonly number[]> {
    const parts = yield* cutFurther(piece, first)
    if (parts.length === 1) return yield* model.encode(parts[0]!, most)
    const ids: number[] = []
    for (const [index, part] of parts.entries()) {
      if (index % perPiece === perPiece - 1) yield
      let known = merged.get(part)
      if (!known) {
        known = yield* model.encode(part, most)
        merged.add(part, known)
      }
      for (const id of known) ids.push(id)
      if (ids.length > most) throw new TooManyTokens(most)
    }
    return ids
  }
  return function* (text, first, ids, most) {
    const pieces = cut ? yield* cut(text, first) : [text]
    for (let index = 0; index < pieces.length; index++) {
      const piece = pieces[index]!
      const apart = first && index === 0
      let known = apart ? undefined : cutOff.get(piece)
      if (!known) {
        known = yield* encode(piece, apart, most)
        if (!apart) cutOff.add(piece, known)
      }
      for (let place = 0; place < known.length; place++) ids.push(known[place]!)
      if (ids.length > most) throw new TooManyTokens(most)
      if (index % perPiece === perPiece - 1) yield
    }
  }
}
