import { underTimeLimit } from "../util/time-limit.ts"

/** Milliseconds that all searches of one list may take together, those of quick expressions not counted. */
const longest = 500

export interface Timed {
  readonly expression: RegExp
  /** Whether every search of it in the name of a module is short. */
  readonly isQuick: boolean
}

/** Regular expressions whose work is limited: some take exponential time on a name of thirty characters. */
export class TimedPatterns {
  readonly #expressions: readonly Timed[]
  readonly #tooSlow: () => Error
  #spent = 0

  /** @param tooSlow - makes the error that is thrown where they take too long */
  constructor(expressions: readonly Timed[], tooSlow: () => Error) {
    this.#expressions = expressions
    this.#tooSlow = tooSlow
  }

  /** The first expression that a name satisfies, by its place, and what it found. */
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
 * A regular expression of Python's `re`, as PEFT's keys hold them, on names of modules.
 *
 * @returns undefined for what means something else here, or nothing
 */
export function pythonPattern(source: string): RegExp | undefined {
  const flag = /^\(\?([ims]+)\)/.exec(source)
  const body = source
    .slice(flag?.[0].length ?? 0)
    .replaceAll("(?P<", "(?<")
    .replace(/\(\?P=(\w+)\)/g, "\\k<$1>")
    .replace(/(?<!\\)((?:\\\\)*)\\A/g, "$1^")
    .replace(/(?<!\\)((?:\\\\)*)\\[Zz]/g, "$1$$")
  // Possessive and atomic groups, flags within, conditionals and comments; JavaScript lacks them or reads them otherwise.
  if (/\(\?(?:>|#|\(|[aiLmsux-]+[:)])|[*+?}]\+|\\[NG]/.test(body)) return undefined
  try {
    const expression = new RegExp(body, flag?.[1] ?? "")
    expression.test("") // expressions are compiled when they are first used, and one that is too large fails only then
    return expression
  } catch {
    return undefined
  }
}
