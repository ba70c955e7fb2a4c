import type { Pieces } from "../util/pace.ts"

// JSON parser (RFC 8259) that can pause. `JSON.parse` cannot: an array of 250,000 objects blocks the event loop for 40
// ms.

/** Limits of the structure of a JSON text. */
export interface Nesting {
  /** Maximum levels of objects and lists. */
  readonly deepest: number
  /** Maximum number of objects and lists. */
  readonly mostParts: number
}

/** Error for JSON beyond a limit. The message follows the name of the text, as in "The request is nested …". */
export class JsonExcess extends SyntaxError {}

/** Characters between two points at which parsing can pause. */
const charactersPerPiece = 4096

/** Object or list that is being read. */
interface Open {
  readonly value: Record<string, unknown> | unknown[]
  readonly end: "}" | "]"
  /** Position of its first character. */
  readonly from: number
  /** Name of the member being read; undefined in a list. */
  key: string | undefined
}

/**
 * Parses a JSON text, with the result of `JSON.parse`.
 *
 * @param keep - called with each object and list, and its source text
 * @throws SyntaxError, JsonExcess
 */
export function* readJsonInPieces(
  text: string,
  keep: (value: object, text: string) => void,
  { deepest, mostParts }: Nesting = { deepest: Number.POSITIVE_INFINITY, mostParts: Number.POSITIVE_INFINITY },
): Pieces<unknown> {
  const open: Open[] = []
  let parts = 0
  let paused = 0
  let at = behindBlank(text, 0)
  for (;;) {
    if (at - paused > charactersPerPiece) {
      paused = at
      yield
    }
    let value: unknown
    let empty = false
    const first = text[at]
    if (first === "{" || first === "[") {
      if (open.length === deepest) throw new JsonExcess(`is nested more than ${deepest} levels deep`)
      if (++parts > mostParts) throw new JsonExcess(`has more than ${mostParts} objects and lists`)
      const within: Open =
        first === "{"
          ? { value: {}, end: "}", from: at, key: undefined }
          : { value: [], end: "]", from: at, key: undefined }
      open.push(within)
      at = behindBlank(text, at + 1)
      empty = text[at] === within.end
      if (!empty) {
        if (first === "{") [within.key, at] = yield* keyAt(text, at)
        continue
      }
    } else if (first === '"') [value, at] = shortString(text, at) ?? (yield* longString(text, at))
    else [value, at] = scalarAt(text, at)

    for (;;) {
      const within = open.at(-1)
      if (!within) {
        at = behindBlank(text, at)
        if (at < text.length) throw unexpected(text, at)
        return value
      }
      if (!empty) put(within, value)
      empty = false
      at = behindBlank(text, at)
      if (text[at] === ",") {
        at = behindBlank(text, at + 1)
        if (within.end === "}") [within.key, at] = yield* keyAt(text, at)
        break
      }
      if (text[at] !== within.end) throw unexpected(text, at)
      at++
      open.pop()
      keep(within.value, text.slice(within.from, at))
      value = within.value
    }
  }
}

function put({ value, key }: Open, member: unknown): void {
  if (Array.isArray(value)) value.push(member)
  else if (key !== "__proto__") value[key!] = member
  else Object.defineProperty(value, key, { value: member, configurable: true, enumerable: true, writable: true })
}

/** Name of a member, and the position of its value. */
function* keyAt(text: string, at: number): Pieces<[string, number]> {
  if (text[at] !== '"') throw unexpected(text, at)
  const [key, end] = shortString(text, at) ?? (yield* longString(text, at))
  const colon = behindBlank(text, end)
  if (text[colon] !== ":") throw unexpected(text, colon)
  return [key, behindBlank(text, colon + 1)]
}

/**
 * String of at most one piece without escaped quotes, which is the common case, and the position after it; undefined
 * otherwise.
 */
function shortString(text: string, begin: number): [string, number] | undefined {
  const end = text.indexOf('"', begin + 1)
  if (end < 0 || end - begin > charactersPerPiece || text[end - 1] === "\\") return undefined
  // A slice would keep the whole text in memory as long as the string is used.
  return [JSON.parse(text.slice(begin, end + 1)) as string, end + 1]
}

function* longString(text: string, begin: number): Pieces<[string, number]> {
  const parts: string[] = []
  let quote = begin
  for (let from = begin + 1; ; ) {
    const until = from + charactersPerPiece
    // Next unescaped quote in this piece or after it.
    if (quote < from) quote = text.indexOf('"', from)
    while (quote >= 0 && quote < until && backslashesBefore(text, quote, from) % 2 > 0)
      quote = text.indexOf('"', quote + 1)
    if (quote < 0) throw unexpected(text, text.length)
    const ends = quote < until
    const to = ends ? quote : wholeEscapes(text, from, until)
    parts.push(JSON.parse(`"${text.slice(from, to)}"`) as string)
    if (ends) return [parts.join(""), quote + 1]
    from = to
    yield
  }
}

/** Last position up to `until` that is not within an escape sequence. `from` must not be within one. */
function wholeEscapes(text: string, from: number, until: number): number {
  const last = from + text.slice(from, until).lastIndexOf("\\")
  if (last < from || last < until - 5) return until // \u1234 has 6 characters
  const begins = backslashesBefore(text, last, from) % 2 === 0
  return begins ? last : last + 1
}

function backslashesBefore(text: string, at: number, from: number): number {
  let first = at
  while (first > from && text[first - 1] === "\\") first--
  return at - first
}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const words: Readonly<Record<string, readonly [word: string, value: boolean | null]>> = {
  t: ["true", true],
  f: ["false", false],
  n: ["null", null],
}

/** Number, boolean or null, and the position after it. */
function scalarAt(text: string, at: number): [number | boolean | null, number] {
  const [word, value] = words[text[at] ?? ""] ?? []
  if (word !== undefined && text.startsWith(word, at)) return [value!, at + word.length]
  number.lastIndex = at
  const found = number.exec(text)
  if (!found) throw unexpected(text, at)
  return [Number(found[0]), number.lastIndex]
}

function behindBlank(text: string, from: number): number {
  let at = from
  for (;;) {
    const code = text.charCodeAt(at)
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at
    at++
  }
}

function unexpected(text: string, at: number): SyntaxError {
  const found = at < text.length ? `${JSON.stringify(text[at])} at character ${at}` : "the end"
  return new SyntaxError(`unexpected ${found}`)
}
