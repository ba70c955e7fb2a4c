/** Limits of a JSON text. */
export interface JsonLimits {
  /** Maximum strings, field names included, and maximum lists or objects. A million take seconds to parse. */
  readonly strings: number
  /** Maximum values in lists and objects. */
  readonly values: number
}

/** Returns which limit a JSON text exceeds, as a predicate ("has more than …"); undefined for none. */
export function jsonExcess(text: string, { strings, values }: JsonLimits): string | undefined {
  if (hasMore(text, '"', 2 * strings)) return `has more than ${strings} strings`
  if (hasMore(text, "[", strings) || hasMore(text, "{", strings)) return `has more than ${strings} lists or objects`
  if (hasMore(text, ",", values)) return `has more than ${values} values`
  return undefined
}

function hasMore(text: string, mark: string, most: number): boolean {
  let count = 0
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1)) if (++count > most) return true
  return false
}
