import { underTimeLimit } from "../util/time-limit.ts"

/** Maximum total milliseconds of all searches of one list, without those of quick expressions. */
const longest = 500

/** Regular expression of `TimedPatterns`. */
export interface Timed {
  readonly expression: RegExp
  /** Whether a search in a module name is always fast, so that no time limit is needed. */
  readonly isQuick: boolean
}

/** Regular expressions with a time limit: some take exponential time on a name of 30 characters. */
export class TimedPatterns {
  readonly #expressions: readonly Timed[]
  readonly #tooSlow: () => Error
  #spent = 0

  /** @param tooSlow - creates the error for exceeded time */
  constructor(expressions: readonly Timed[], tooSlow: () => Error) {
    this.#expressions = expressions
    this.#tooSlow = tooSlow
  }

  /** Returns the index and match of the first expression that matches a name. */
  first(name: string): readonly [place: number, found: RegExpExecArray] | undefined {
    for (const [place, { expression, isQuick }] of this.#expressions.entries()) {
      const found = isQuick ? expression.exec(name) : this.#timed(expression, name)
      if (found) return [place, found]
    }
    return undefined
  }

  #timed(expression: RegExp, name: string): RegExpExecArray | null {
    const since = performance.now()
    const done = underTimeLimit(Math.max(Math.ceil(longest - this.#spent), 1), () => expression.exec(name))
    this.#spent += performance.now() - since
    if (done) return done.value
    throw this.#tooSlow()
  }
}

/**
 * Converts a regular expression of Python's `re`, as in PEFT's fields, to JavaScript.
 *
 * @returns undefined for an expression that is invalid or has another meaning in JavaScript
 */
export function pythonPattern(source: string): RegExp | undefined {
  const flag = /^\(\?([ims]+)\)/.exec(source)
  const body = source
    .slice(flag?.[0].length ?? 0)
    .replaceAll("(?P<", "(?<")
    .replace(/\(\?P=(\w+)\)/g, "\\k<$1>")
    .replace(/(?<!\\)((?:\\\\)*)\\A/g, "$1^")
    .replace(/(?<!\\)((?:\\\\)*)\\[Zz]/g, "$1$$")
  // Possessive quantifiers, atomic groups, inline flags, conditionals and comments: JavaScript lacks them or interprets them differently.
  if (/\(\?(?:>|#|\(|[aiLmsux-]+[:)])|[*+?}]\+|\\[NG]/.test(body)) return undefined
  try {
    const expression = new RegExp(body, flag?.[1] ?? "")
    expression.test("") // compiled at the first use: an expression that is too large fails only then
    return expression
  } catch {
    return undefined
  }
}
