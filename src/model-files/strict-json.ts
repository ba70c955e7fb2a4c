/** Value of `parseStrictJson`. An object is a Map; an unsigned integer of at most 18 digits is a bigint. */
export type JsonValue = string | number | bigint | boolean | null | JsonValue[] | Map<string, JsonValue>

const space = /[ \t\n\r]*/y
const numeral = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const loneSurrogate = /\p{Surrogate}/u
const maxDepth = 64
// About 200,000 tensors in one file. A larger number could fill the memory before anything is checked.
const maxValues = 2_000_000
const constants = [
  ["true", true],
  ["false", false],
  ["null", null],
] as const

/**
 * Parses JSON from untrusted files. `JSON.parse` is too lenient for them: it keeps the last of two equal keys, rounds integers
 * above 2^53 and does not distinguish `1.0` from `1`. This parser returns objects as Maps, so that `__proto__` is an ordinary
 * key, and refuses repeated keys. Unsigned integers of at most 18 digits are bigints; all other numbers are numbers. Depth and
 * number of values are limited.
 *
 * @throws SyntaxError with the problem and its position
 */
export function parseStrictJson(text: string): JsonValue {
  let at = 0
  let values = 0
  const fail: (what: string) => never = (what) => {
    throw new SyntaxError(`${what} at character ${at}`)
  }

  const skipSpace = (): void => {
    space.lastIndex = at
    space.test(text)
    at = space.lastIndex
  }

  /** Skips a comma (returns true) or the closing bracket (returns false). */
  const more = (close: string): boolean => {
    skipSpace()
    const mark = text[at]
    if (mark !== "," && mark !== close) fail(`expected "," or "${close}"`)
    at++
    return mark === ","
  }

  const string = (): string => {
    if (text[at] !== '"') fail("expected a string")
    let end = at
    let backslashes: number
    do {
      end = text.indexOf('"', end + 1)
      if (end < 0) fail("unterminated string")
      backslashes = 0
      while (text[end - 1 - backslashes] === "\\") backslashes++
    } while (backslashes % 2 === 1)
    let result = ""
    try {
      result = JSON.parse(text.slice(at, end + 1))
    } catch {
      fail("invalid string")
    }
    if (loneSurrogate.test(result)) fail("a string that is not valid Unicode")
    at = end + 1
    return result
  }

  const object = (depth: number): Map<string, JsonValue> => {
    const result = new Map<string, JsonValue>()
    at++
    skipSpace()
    if (text[at] === "}") {
      at++
      return result
    }
    do {
      skipSpace()
      const key = string()
      if (result.has(key)) fail(`the key ${quote(key)} occurs twice`)
      skipSpace()
      if (text[at] !== ":") fail('expected ":"')
      at++
      result.set(key, value(depth + 1))
    } while (more("}"))
    return result
  }

  const array = (depth: number): JsonValue[] => {
    const result: JsonValue[] = []
    at++
    skipSpace()
    if (text[at] === "]") {
      at++
      return result
    }
    do result.push(value(depth + 1))
    while (more("]"))
    return result
  }

  const number = (): number | bigint => {
    numeral.lastIndex = at
    const digits = numeral.exec(text)?.[0] ?? fail("expected a value")
    at += digits.length
    return /^[0-9]{1,18}$/.test(digits) ? BigInt(digits) : Number(digits)
  }

  const value = (depth: number): JsonValue => {
    if (depth > maxDepth) fail(`nested deeper than ${maxDepth} levels`)
    if (++values > maxValues) fail(`more than ${maxValues} values`)
    skipSpace()
    const first = text[at]
    if (first === "{") return object(depth)
    if (first === "[") return array(depth)
    if (first === '"') return string()
    for (const [word, constant] of constants) {
      if (!text.startsWith(word, at)) continue
      at += word.length
      return constant
    }
    return number()
  }

  const result = value(0)
  skipSpace()
  if (at < text.length) fail("unexpected text after the value")
  return result
}

/** Quotes a name from an untrusted file for a message: escaped, and cut to 200 characters. */
export function quote(name: string): string {
  return JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name)
}
