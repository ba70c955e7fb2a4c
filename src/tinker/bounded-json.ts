export interface JsonLimits {
  /** Strings, with the names of fields, and as many lists and objects: a million take seconds to parse. */
  readonly strings: number
  /** Values in lists and objects. */
  readonly values: number
}

/** What a JSON text has too much of, to be said after what it is called; undefined where it may be parsed. */
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
