import { GigpoError } from "../../util/errors.ts"
import { underTimeLimit } from "../../util/time-limit.ts"
import { escaped } from "./code-points.ts"
import { Unsupported } from "./fields.ts"
import { linearPatterns } from "./linear-patterns.ts"
import { type Cursor, caseVariants, readClass, readEscape } from "./pattern-class.ts"

interface Part {
  readonly source: string
  /** Whether it can match the empty text. */
  readonly nullable: boolean
  /** Whether it reads a text of any length. */
  readonly endless: boolean
  /** In how many ways it can match at one place, an endless repetition counted once: what a search may have to try. */
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

/** A pattern of tokenizer.json as a regular expression. */
export class Pattern {
  /** With flag g. */
  readonly regExp: RegExp
  /** UTF-16 units of its shortest match, or fewer. */
  readonly least: number
  readonly #strange: string | undefined

  /** @param strange its source, where its time may be more than linear */
  constructor(regExp: RegExp, least = 1, strange?: string) {
    this.regExp = regExp
    this.least = least
    this.#strange = strange
  }

  /** Finds a text as it stands. */
  static literal(text: string): Pattern {
    if (text === "") throw new Unsupported("has an empty text for a pattern")
    const source = [...text].map((character) => escaped(character.codePointAt(0)!)).join("")
    return new Pattern(new RegExp(source, "gu"), text.length)
  }

  /**
   * Regular expression with the meaning of one that is written for Oniguruma. Classes are spelled out, so that they do not depend on the
   * Unicode version of Node.js. Fails with Unsupported where JavaScript cannot be trusted to agree.
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

  /** Whether its time is linear in the length of any text. */
  get linear(): boolean {
    return this.#strange === undefined
  }

  /** Does work with the regular expression. Fails with BAD_TOKENIZER where its time is not linear and longer than a second. */
  limited<T>(work: () => T): T {
    if (this.#strange === undefined) return work()
    const done = underTimeLimit(longestSearch, work)
    if (done) return done.value
    throw new GigpoError(
      "BAD_TOKENIZER",
      `a pattern of tokenizer.json ran longer than ${longestSearch} ms on one text: ${this.#strange.slice(0, 200)}; take a model from another source`,
    )
  }
}

/** Of a pattern whose time is not linear in one text, in ms. */
const longestSearch = 1000
/** In UTF-16 units; published ones have up to 400. */
const longestPattern = 8192
/** An interval up to this many repetitions counts as a few atoms, a longer one as an endless repetition. */
const fewRepetitions = 16
/** Ways to match at one place that are tried without a limit of time. */
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
      // What is read endlessly is read anew for each way in which the rest fails.
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

  /** JavaScript does not go back into a lookahead, so that one with a reference behind it is an atomic group. */
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
    // Behind an interval a plus is no possessive mark, but repeats it.
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

/** Of up to `most` repetitions. Of one character they differ in their number alone. */
function waysOf(part: Part, endless: boolean, most: number): number {
  if (part.endless || (endless && part.ways > 1)) return Number.POSITIVE_INFINITY
  if (endless) return 1
  return part.ways === 1 ? most + 1 : (part.ways + 1) ** most
}

function unsupported({ pattern }: Cursor, what: string): Unsupported {
  return new Unsupported(`has a pattern with ${what}, which is not supported: ${pattern.slice(0, 200)}`)
}
