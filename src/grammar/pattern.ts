import { GigpoError } from "../util/errors.ts"
import { both, character, except } from "./characters.ts"
import { plainRanges, stringCharacter } from "./json.ts"
import { choice, impossible, later, type Node, type Range, repeat, sequence, text } from "./node.ts"

// The regular subset of ECMA-262 regular expressions, as in patterns of JSON Schema.

const digits: readonly Range[] = [[0x30, 0x39]]
const word: readonly Range[] = [[0x30, 0x39], [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]] // biome-ignore format: one line
/** White space as in \s and trim(). */
export const spaces: readonly Range[] = [...[0x20, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff].map((c) => [c, c] as const), [9, 13], [0x2000, 0x200a]] // biome-ignore format: one line
const lineEnds: readonly Range[] = [[10, 10], [13, 13], [0x2028, 0x2029]] // biome-ignore format: one line
const controls: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, "0": 0 }
const most = 1000 // of a repetition's bounds
const deepest = 50

/**
 * Grammar of a JSON string, with quotes, that a pattern matches. Without ^ or $ the match may be anywhere in the string, as in ECMA-262.
 * Characters that JSON requires to be escaped are escaped.
 */
export function patternString(pattern: string): Node {
  return sequence(text('"'), new PatternReader(pattern, inJson).search(), text('"'))
}

/** Grammar of a text that a pattern matches as a whole, as if it had ^ and $. */
export function patternText(pattern: string): Node {
  return new PatternReader(pattern, plain).match()
}

/** Writing of characters in the text that a grammar describes. */
interface Alphabet {
  readonly any: Node
  of(ranges: readonly Range[]): Node
  literal(char: string): Node
}

const plain: Alphabet = { any: later(() => character(except([]))), of: character, literal: text }

class PatternReader {
  readonly #pattern: string
  readonly #characters: readonly string[]
  readonly #alphabet: Alphabet
  #at = 0

  constructor(pattern: string, alphabet: Alphabet) {
    this.#pattern = pattern
    this.#characters = [...pattern]
    this.#alphabet = alphabet
  }

  /** Grammar of texts that contain a match. */
  search(): Node {
    const anything = repeat(this.#alphabet.any, 0, Number.POSITIVE_INFINITY)
    return this.#whole((alternative, begins, ends) =>
      sequence(...(begins ? [] : [anything]), alternative, ...(ends ? [] : [anything])),
    )
  }

  /** Grammar of texts that are a match. */
  match(): Node {
    return this.#whole((alternative) => alternative)
  }

  #whole(around: (node: Node, begins: boolean, ends: boolean) => Node): Node {
    const node = this.#alternatives(0, around)
    if (this.#at < this.#characters.length) throw this.#refuse("has a ) without its (")
    return node
  }

  /** Reads alternatives. At the outermost level, each may have any text around it, unless it has ^ or $. */
  #alternatives(depth: number, around?: (node: Node, begins: boolean, ends: boolean) => Node): Node {
    if (depth > deepest) throw this.#refuse("is nested too deeply")
    const parts: Node[] = []
    do {
      const begins = around !== undefined && this.#take("^")
      const terms: Node[] = []
      while (this.#at < this.#characters.length && !"|)".includes(this.#next) && !(around && this.#isLast("$")))
        terms.push(this.#repeated(this.#term(depth)))
      const ends = around !== undefined && this.#take("$")
      const all: Node = { kind: "sequence", parts: terms }
      parts.push(around ? around(all, begins, ends) : all)
    } while (this.#take("|"))
    return choice(parts)
  }

  #term(depth: number): Node {
    const char = this.#shift()
    if (char === "(") {
      if (this.#take("?") && !this.#take(":")) throw this.#refuse("has a lookaround or a named group")
      const group = this.#alternatives(depth + 1)
      if (!this.#take(")")) throw this.#refuse("has a ( without its )")
      return group
    }
    if (char === "[") return this.#alphabet.of(this.#class())
    if (char === ".") return this.#alphabet.of(except(lineEnds))
    if (char === "\\") return this.#alphabet.of(this.#escape())
    if ("^$".includes(char)) throw this.#refuse(`has a ${char} in the middle`)
    if ("*+?{}".includes(char)) throw this.#refuse(`repeats nothing with ${char}`)
    return /\p{Surrogate}/u.test(char) ? impossible : this.#alphabet.literal(char)
  }

  #repeated(node: Node): Node {
    const bounds = this.#bounds()
    if (!bounds) return node
    this.#take("?") // greediness does not change the language
    return repeat(node, ...bounds)
  }

  #bounds(): [number, number] | undefined {
    if (this.#take("*")) return [0, Number.POSITIVE_INFINITY]
    if (this.#take("+")) return [1, Number.POSITIVE_INFINITY]
    if (this.#take("?")) return [0, 1]
    if (!this.#take("{")) return undefined
    const [, low, comma, high] =
      /^(\d+)(,?)(\d*)\}/.exec(this.#characters.slice(this.#at, this.#at + 20).join("")) ?? []
    if (low === undefined) throw this.#refuse("has a { that is not a repetition")
    this.#at += `${low}${comma}${high}}`.length
    const least = Number(low)
    const upper = high ? Number(high) : comma ? Number.POSITIVE_INFINITY : least
    if (least > most || (upper > most && upper !== Number.POSITIVE_INFINITY) || upper < least)
      throw this.#refuse(`repeats something {${low}${comma}${high}} times; bounds go up to ${most}`)
    return [least, upper]
  }

  #class(): Range[] {
    const negated = this.#take("^")
    const ranges: Range[] = []
    while (!this.#take("]")) {
      const from = this.#classMember()
      if (
        from.length === 1 &&
        from[0]![0] === from[0]![1] &&
        this.#next === "-" &&
        this.#characters[this.#at + 1] !== "]"
      ) {
        this.#shift()
        const to = this.#classMember()
        if (to.length !== 1 || to[0]![0] !== to[0]![1] || to[0]![0] < from[0]![0])
          throw this.#refuse("has an invalid range of characters")
        ranges.push([from[0]![0], to[0]![1]])
      } else ranges.push(...from)
    }
    return negated ? except(ranges) : ranges
  }

  #classMember(): Range[] {
    const char = this.#shift()
    if (char !== "\\") return single(char)
    if (this.#take("b")) return [[8, 8]]
    if (this.#take("-")) return single("-")
    return this.#escape()
  }

  #escape(): Range[] {
    const char = this.#shift()
    if (char === "d") return [...digits]
    if (char === "D") return except(digits)
    if (char === "w") return [...word]
    if (char === "W") return except(word)
    if (char === "s") return [...spaces]
    if (char === "S") return except(spaces)
    if (char === "x") return this.#codePoint(2)
    if (char === "u") return this.#codePoint(4)
    if (char === "0" && /\d/.test(this.#next)) throw this.#refuse(`has \\0${this.#next}, which is not supported`)
    const control = controls[char]
    if (control !== undefined) return [[control, control]]
    if (/[\p{L}\p{N}]/u.test(char)) throw this.#refuse(`has \\${char}, which is not supported`)
    return single(char)
  }

  #codePoint(length: number): Range[] {
    const digits = this.#characters.slice(this.#at, this.#at + length).join("")
    if (!new RegExp(`^[0-9A-Fa-f]{${length}}$`).test(digits))
      throw this.#refuse("has an escape without its hexadecimal digits")
    this.#at += length
    const point = Number.parseInt(digits, 16)
    if (point >= 0xd800 && point <= 0xdfff) throw this.#refuse("has a lone surrogate")
    return [[point, point]]
  }

  get #next(): string {
    return this.#characters[this.#at] ?? ""
  }

  #isLast(char: string): boolean {
    return this.#next === char && ["|", undefined].includes(this.#characters[this.#at + 1])
  }

  #take(char: string): boolean {
    if (this.#next !== char) return false
    this.#at++
    return true
  }

  #shift(): string {
    const char = this.#characters[this.#at++]
    if (char === undefined) throw this.#refuse("ends too early")
    return char
  }

  #refuse(what: string): GigpoError {
    return new GigpoError(
      "BAD_ARGUMENT",
      `The pattern ${JSON.stringify(this.#pattern.slice(0, 100))} ${what}: use only characters, classes, groups (?:…), |, and repetitions, with ^ and $ only at the ends.`,
    )
  }
}

function single(char: string): Range[] {
  const point = char.codePointAt(0)!
  return [[point, point]]
}

/** Characters that JSON must escape, as JSON.stringify writes them. */
const escapes: readonly (readonly [point: number, written: Node])[] = except(plainRanges).flatMap(([low, high]) =>
  Array.from({ length: high - low + 1 }, (_, i) => {
    return [low + i, text(escapedJson(String.fromCodePoint(low + i)))] as const
  }),
)

const inJson: Alphabet = { any: stringCharacter, of: asJson, literal: (char) => text(escapedJson(char)) }

function escapedJson(char: string): string {
  return JSON.stringify(char).slice(1, -1)
}

/** Character from ranges as in a JSON string: plain if allowed, else escaped as JSON.stringify does. */
function asJson(ranges: readonly Range[]): Node {
  return later(() => {
    const escaped = escapes.filter(([point]) => ranges.some(([low, high]) => low <= point && point <= high))
    const plain = both(ranges, plainRanges)
    return choice([...(plain.length > 0 ? [character(plain)] : []), ...escaped.map(([, written]) => written)])
  })
}
