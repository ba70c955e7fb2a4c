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
 * key, and rejects repeated keys. Unsigned integers of at most 18 digits are bigints; all other numbers are numbers. Depth and
 * number of values are limited.
 *
 * @throws SyntaxError with the problem and its position
 */
export function parseStrictJson(text: string): JsonValue {
  return new Parser(text).whole()
}

class Parser {
  readonly #text: string
  #at = 0
  #values = 0

  constructor(text: string) {
    this.#text = text
  }

  whole(): JsonValue {
    const result = this.#value(0)
    this.#skipSpace()
    if (this.#at < this.#text.length) this.#fail("unexpected text after the value")
    return result
  }

  #value(depth: number): JsonValue {
    if (depth > maxDepth) this.#fail(`nested deeper than ${maxDepth} levels`)
    if (++this.#values > maxValues) this.#fail(`more than ${maxValues} values`)
    this.#skipSpace()
    const first = this.#text[this.#at]
    if (first === "{") return this.#object(depth)
    if (first === "[") return this.#array(depth)
    if (first === '"') return this.#string()
    for (const [word, constant] of constants) {
      if (!this.#text.startsWith(word, this.#at)) continue
      this.#at += word.length
      return constant
    }
    return this.#number()
  }

  #object(depth: number): Map<string, JsonValue> {
    const result = new Map<string, JsonValue>()
    if (this.#isEmpty("}")) return result
    do {
      this.#skipSpace()
      const key = this.#string()
      if (result.has(key)) this.#fail(`the key ${quote(key)} occurs twice`)
      this.#skipSpace()
      if (this.#text[this.#at] !== ":") this.#fail('expected ":"')
      this.#at++
      result.set(key, this.#value(depth + 1))
    } while (this.#more("}"))
    return result
  }

  #array(depth: number): JsonValue[] {
    const result: JsonValue[] = []
    if (this.#isEmpty("]")) return result
    do result.push(this.#value(depth + 1))
    while (this.#more("]"))
    return result
  }

  /** Skips the opening bracket, and the closing one if it follows at once. */
  #isEmpty(close: string): boolean {
    this.#at++
    this.#skipSpace()
    if (this.#text[this.#at] !== close) return false
    this.#at++
    return true
  }

  /** Skips a comma (returns true) or the closing bracket (returns false). */
  #more(close: string): boolean {
    this.#skipSpace()
    const mark = this.#text[this.#at]
    if (mark !== "," && mark !== close) this.#fail(`expected "," or "${close}"`)
    this.#at++
    return mark === ","
  }

  #string(): string {
    const text = this.#text
    if (text[this.#at] !== '"') this.#fail("expected a string")
    let end = this.#at
    let backslashes: number
    do {
      end = text.indexOf('"', end + 1)
      if (end < 0) this.#fail("unterminated string")
      backslashes = 0
      while (text[end - 1 - backslashes] === "\\") backslashes++
    } while (backslashes % 2 === 1)
    let result = ""
    try {
      result = JSON.parse(text.slice(this.#at, end + 1))
    } catch {
      this.#fail("invalid string")
    }
    if (loneSurrogate.test(result)) this.#fail("a string that is not valid Unicode")
    this.#at = end + 1
    return result
  }

  #number(): number | bigint {
    numeral.lastIndex = this.#at
    const digits = numeral.exec(this.#text)?.[0] ?? this.#fail("expected a value")
    this.#at += digits.length
    return /^[0-9]{1,18}$/.test(digits) ? BigInt(digits) : Number(digits)
  }

  #skipSpace(): void {
    space.lastIndex = this.#at
    space.test(this.#text)
    this.#at = space.lastIndex
  }

  #fail(what: string): never {
    throw new SyntaxError(`${what} at character ${this.#at}`)
  }
}

/** Quotes a name from an untrusted file for a message: escaped, and cut to 200 characters. */
export function quote(name: string): string {
  return JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name)
}
