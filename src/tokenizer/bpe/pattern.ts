import { GigpoError } from "../../util/errors.ts"
import { underTimeLimit } from "../../util/time-limit.ts"
import { escaped } from "./code-points.ts"
import { Unsupported } from "./fields.ts"
import { linearPatterns } from "./linear-patterns.ts"
import { type Cursor, caseVariants, readClass, readEscape } from "./pattern-class.ts"

interface Part {
  readonly source: string
  /** Whether the part can match the empty text. */
  readonly nullable: boolean
  /** Whether the length of a match is unlimited. */
  readonly endless: boolean
  /** Number of ways to match at one place, which a search may try; an endless repetition counts once. */
  readonly ways: number
}

const groups: Readonly<Record<string, string>> = {
  "(?:": "(?:",
  "(?i:": "(?:",
  "(?=": "(?=",
  "(?!": "(?!",
  "(?<=": "(?<=",
  "(?<!": "(?<!",
  "(?>": "(?>",
  "(": "(?:",
}

/** Pattern of tokenizer.json as a regular expression. */
export class Pattern {
  /** Regular expression with flag g. */
  readonly regExp: RegExp
  /** Lower bound of the length of a match in UTF-16 units. */
  readonly least: number
  readonly #strange: string | undefined

  /** @param strange - source of a pattern whose time may be more than linear */
  constructor(regExp: RegExp, least = 1, strange?: string) {
    this.regExp = regExp
    this.least = least
    this.#strange = strange
  }

  /** Pattern of a literal text. */
  static literal(text: string): Pattern {
    if (text === "") throw new Unsupported("has an empty text for a pattern")
    const source = [...text].map((character) => escaped(character.codePointAt(0)!)).join("")
    return new Pattern(new RegExp(source, "gu"), text.length)
  }

  /**
   * Converts a regular expression of Oniguruma. Classes are spelled out, so that they do not depend on the Unicode version of Node.js. Throws
   * Unsupported for constructs without an exact equivalent in JavaScript.
   */
  static expression(pattern: string): Pattern {
    if (pattern.length > longestPattern)
      throw new Unsupported(`has a pattern of ${pattern.length} characters, which is not supported`)
    const cursor: Cursor = { characters: [...pattern], at: 0, pattern }
    const parser = new Parser(cursor)
    const { source, nullable, ways } = parser.alternatives(false)
    if (cursor.at < cursor.characters.length) throw unsupported(cursor, "a closing bracket too many")
    if (nullable) throw unsupported(cursor, "a match of nothing")
    return new Pattern(
      new RegExp(source, "gv"),
      1,
      ways <= mostWays || linearPatterns.has(pattern) ? undefined : pattern,
    )
  }

  replace(text: string, content: string): string {
    return this.limited(() => text.replace(this.regExp, () => content))
  }

  /** Whether the pattern takes linear time for every text. */
  get linear(): boolean {
    return this.#strange === undefined
  }

  /** Runs work with the regular expression. Throws BAD_TOKENIZER if a pattern without linear time takes more than a second. */
  limited<T>(work: () => T): T {
    if (this.#strange === undefined) return work()
    const done = underTimeLimit(longestSearch, work)
    if (done) return done.value
    throw new GigpoError(
      "BAD_TOKENIZER",
      `a pattern of tokenizer.json ran longer than ${longestSearch} ms on one text: ${this.#strange.slice(0, 200)}; use a model from another source`,
    )
  }
}

/** Time limit of a pattern without linear time for one text, in milliseconds. */
const longestSearch = 1000
/** Maximum length of a pattern in UTF-16 units; published ones have up to 400. */
const longestPattern = 8192
/** Maximum repetitions of an interval that counts as several atoms; longer ones count as endless. */
const fewRepetitions = 16
/** Maximum number of ways to match at one place without a time limit. */
const mostWays = 256

class Parser {
  readonly #cursor: Cursor
  #atomics = 0

  constructor(cursor: Cursor) {
    this.#cursor = cursor
  }

  alternatives(ignoreCase: boolean): Part {
    const parts = [this.#sequence(ignoreCase)]
    while (this.#take("|")) parts.push(this.#sequence(ignoreCase))
    return {
      source: parts.map(({ source }) => source).join("|"),
      nullable: parts.some(({ nullable }) => nullable),
      endless: parts.some(({ endless }) => endless),
      ways: parts.reduce((sum, { ways }) => sum + ways, 0),
    }
  }

  #sequence(ignoreCase: boolean): Part {
    let [source, nullable, endless, ways] = ["", true, false, 1]
    for (let next = this.#peek(); next !== undefined && next !== "|" && next !== ")"; next = this.#peek()) {
      const part = this.#quantified(this.#atom(ignoreCase))
      source += part.source
      nullable &&= part.nullable
      // An endless part is matched again for each way in which the rest fails.
      ways *= endless ? Number.POSITIVE_INFINITY : part.ways
      endless ||= part.endless
    }
    return { source, nullable, endless, ways }
  }

  #atom(ignoreCase: boolean): Part {
    const cursor = this.#cursor
    const character = cursor.characters[cursor.at]!
    if (character === "(") return this.#group(ignoreCase)
    if (character === "[") return atom(readClass(cursor, ignoreCase))
    if (character === "\\") return atom(readEscape(cursor, ignoreCase))
    if ("*+?{".includes(character)) throw unsupported(cursor, `${character} without something to repeat`)
    const pair = `${cursor.characters[cursor.at - 1]}${character}`
    if (ignoreCase && /^(?:ss|ff|fi|fl|st)$/i.test(pair)) throw unsupported(cursor, `${pair} within (?i:`) // one letter elsewhere: ß, ﬁ
    cursor.at++
    if (character === ".") return atom("[^\\n]")
    if (character === "^") return { ...atom("(?<![^\\n])"), nullable: true }
    if (character === "$") return { ...atom("(?![^\\n])"), nullable: true }
    return atom(caseVariants(cursor, character.codePointAt(0)!, ignoreCase))
  }

  #group(ignoreCase: boolean): Part {
    const cursor = this.#cursor
    const rest = cursor.characters.slice(cursor.at, cursor.at + 4).join("")
    const opening = Object.keys(groups).find((key) => rest.startsWith(key))!
    if (opening === "(" && rest[1] === "?") throw unsupported(cursor, `a group beginning with ${rest.slice(0, 3)}`)
    cursor.at += opening.length
    const inner = this.alternatives(ignoreCase || opening === "(?i:")
    if (!this.#take(")")) throw unsupported(cursor, "a group without its end")
    if (opening === "(?>") return this.#atomic(inner)
    const looks = /[=!]/.test(opening)
    return {
      source: `${groups[opening]}${inner.source})`,
      nullable: looks || inner.nullable,
      endless: inner.endless,
      ways: looks && inner.endless ? Number.POSITIVE_INFINITY : inner.ways,
    }
  }

  /** Atomic group, written as a lookahead with a backreference, because JavaScript does not backtrack into lookaheads. */
  #atomic({ source, ...part }: Part): Part {
    const name = `a${this.#atomics++}`
    return { ...part, source: `(?:(?=(?<${name}>${source}))\\k<${name}>)` }
  }

  #quantified(part: Part): Part {
    const cursor = this.#cursor
    const ahead = cursor.characters.slice(cursor.at, cursor.at + 24).join("")
    const [quantifier] = /^(?:[*+?]|\{\d*,?\d*\})/.exec(ahead) ?? []
    if (quantifier === undefined) return part
    const interval = quantifier[0] === "{"
    if (interval && !/\d/.test(quantifier)) throw unsupported(cursor, quantifier)
    cursor.at += quantifier.length
    if (part.nullable) throw unsupported(cursor, `a repetition (${quantifier}) of what can match nothing`)
    const least = quantifier.replace("{,", "{0,")
    const nullable = /^(?:[*?]|\{0)/.test(least)
    const most = quantifier === "?" ? 1 : Number(/(\d+)\}$/.exec(quantifier)?.[1] ?? Number.POSITIVE_INFINITY)
    const endless = part.endless || most > fewRepetitions
    const ways = waysOf(part, endless, most)
    const mode = this.#take("?") ? "?" : this.#take("+") ? "+" : ""
    if (/^[*+?{]/.test(this.#peek() ?? "")) throw unsupported(cursor, "a repetition of a repetition")
    if (interval && mode === "?") throw unsupported(cursor, `${quantifier}?`)
    if (mode !== "+") return { source: `${part.source}${least}${mode}`, nullable, endless, ways }
    // After an interval, a plus is a repetition, not a possessive mark.
    if (!interval) return this.#atomic({ source: `${part.source}${least}`, nullable, endless, ways })
    if (nullable) throw unsupported(cursor, `${quantifier}+`)
    return { source: `(?:${part.source}${least})+`, nullable, endless: true, ways: Number.POSITIVE_INFINITY }
  }

  #peek(): string | undefined {
    return this.#cursor.characters[this.#cursor.at]
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false
    this.#cursor.at++
    return true
  }
}

function atom(source: string): Part {
  return { source, nullable: false, endless: false, ways: 1 }
}

/** Number of ways to match up to `most` repetitions of a part. */
function waysOf(part: Part, endless: boolean, most: number): number {
  if (part.endless || (endless && part.ways > 1)) return Number.POSITIVE_INFINITY
  if (endless) return 1
  return part.ways === 1 ? most + 1 : (part.ways + 1) ** most
}

function unsupported({ pattern }: Cursor, what: string): Unsupported {
  return new Unsupported(`has a pattern with ${what}, which is not supported: ${pattern.slice(0, 200)}`)
}
