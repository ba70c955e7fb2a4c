import { fault } from "./fault.ts"

/** PDDL expression: a word, or a list in parentheses. */
export type Expression = string | readonly Expression[]

/** Maximum nesting, which bounds recursion. Real texts are nested about 10 deep. */
const maxDepth = 100

const [newline, open, close, semicolon, space] = [10, 40, 41, 59, 32]

/**
 * Parses a text with a single expression, converted to lower case because PDDL is case-insensitive. `;` starts a comment.
 *
 * @param what name of the text in faults, e.g. "pddl_domain"
 */
export function readExpression(text: string, what: string): Expression {
  const lower = text.toLowerCase()
  const lists: Expression[][] = [[]]
  for (let i = 0; i < lower.length; ) {
    const code = lower.charCodeAt(i)
    if (code <= space) i++
    else if (code === semicolon) {
      while (i < lower.length && lower.charCodeAt(i) !== newline) i++
    } else if (code === open) {
      if (lists.length > maxDepth) fault(`${what} is nested more than ${maxDepth} deep`)
      lists.push([])
      i++
    } else if (code === close) {
      const list = lists.pop()!
      const parent = lists.at(-1) ?? fault(`${what} closes a parenthesis that it never opened`)
      parent.push(list)
      i++
    } else {
      const start = i
      while (i < lower.length && !isDelimiter(lower.charCodeAt(i))) i++
      lists.at(-1)!.push(lower.slice(start, i))
    }
  }
  if (lists.length > 1) fault(`${what} ends before all its parentheses are closed`)
  const [first, second] = lists[0]!
  if (first === undefined || second !== undefined) fault(`${what} must be one expression in parentheses`)
  return first
}

function isDelimiter(code: number): boolean {
  return code <= space || code === open || code === close || code === semicolon
}

export function asList(expression: Expression | undefined, what: string): readonly Expression[] {
  return Array.isArray(expression) ? expression : fault(`${what} must be a list in parentheses`)
}

export function asWord(expression: Expression | undefined, what: string): string {
  return typeof expression === "string" ? expression : fault(`${what} must be a word`)
}

/** Name with a type, e.g. `?r - receptacle`. */
export interface Typed {
  readonly name: string
  readonly type: string
}

/**
 * Parses `a b - type c`. Names without a type have the type `object`. Types are kept unchanged: the comma in `(?l - location, ?r -
 * receptacle)` makes a type "location," without any objects, and real games depend on this.
 */
export function readTyped(list: readonly Expression[], what: string): Typed[] {
  const typed: Typed[] = []
  for (let start = 0, i = 0; start < list.length; start = i) {
    while (i < list.length && list[i] !== "-") i++
    const type = i < list.length ? asWord(list[i + 1], `a type in ${what}`) : "object"
    for (const name of list.slice(start, i)) typed.push({ name: asWord(name, `a name in ${what}`), type })
    i += 2
  }
  return typed
}
