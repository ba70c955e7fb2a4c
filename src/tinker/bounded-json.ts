import type { Pieces } from "../util/pace.ts"

/** Limits of a JSON text. */
export interface JsonLimits {
  /** Maximum strings, field names included, and maximum lists or objects. A million take seconds to parse. */
  readonly strings: number
  /** Maximum values in lists and objects. */
  readonly values: number
}

/** Characters between two points at which the check can pause. */
const charactersPerPiece = 2 ** 18

/** Returns which limit a JSON text exceeds, as a predicate ("has more than …"); undefined for none. In short pieces of work. */
export function* jsonExcess(text: string, { strings, values }: JsonLimits): Pieces<string | undefined> {
  const limits: readonly (readonly [mark: string, most: number, what: string])[] = [
    ['"', 2 * strings, `${strings} strings`],
    ["[", strings, `${strings} lists or objects`],
    ["{", strings, `${strings} lists or objects`],
    [",", values, `${values} values`],
  ]
  for (const [mark, most, what] of limits) {
    let count = 0
    for (let from = 0; from < text.length; from += charactersPerPiece) {
      const piece = text.slice(from, from + charactersPerPiece)
      for (let at = piece.indexOf(mark); at >= 0; at = piece.indexOf(mark, at + 1))
        if (++count > most) return `has more than ${what}`
      yield
    }
  }
  return undefined
}
