import type { Facts } from "./facts.ts"
import { fault } from "./fault.ts"
import type { Part } from "./narrator.ts"
import type { Query } from "./query.ts"

/** Source of the values in a text. */
interface Source {
  derive(symbol: string, facts: Facts): string
  all(expression: Part, query: Query, facts: Facts): string[]
  query(text: string): Query
  idOf(variable: string): string
  nameOf(id: string): string
}

// Alternatives: list; value or concatenation (quotation marks hide braces); symbol; other text. A lone mark is literal, because real
// grammars have such typos.
const piece =
  /\[\{((?:'[^']*'|"[^"]*"|[^{}'"])*)\}\]|\{((?:'[^']*'|"[^"]*"|[^{}'"])*)\}|#([^#{}\s][^#{}]*)#|[^[{#]+|[[{#]/y

/** Maximum length in characters. The longest text of real grammars, that of `help`, has about 1,000. */
const maxLength = 10_000

/**
 * Parses a text with `#symbol#`, `{value}`, `{value | query}` (all matches, concatenated) and `[{value | query}]` (all matches, as a
 * list). Leading white space is dropped, as in the reference's parser.
 */
export function readTemplate(text: string, source: Source): readonly Part[] {
  if (text.length > maxLength) fault(`a text of the grammar is longer than ${maxLength} characters`)
  const parts: Part[] = []
  const template = text.trimStart()
  for (piece.lastIndex = 0; piece.lastIndex < template.length; ) {
    const [all, list, value, symbol] = piece.exec(template)!
    const { lastIndex } = piece
    if (list !== undefined) parts.push(listPart(...readQuery(list, source), source))
    else if (value !== undefined) parts.push(valuePart(...readQuery(value, source), source))
    else if (symbol !== undefined) parts.push((facts) => source.derive(symbol, facts))
    else parts.push(() => all)
    piece.lastIndex = lastIndex
  }
  return parts
}

function valuePart(value: Part, query: Query | undefined, source: Source): Part {
  return query ? (facts) => source.all(value, query, facts).join("") : value
}

function listPart(value: Part, query: Query | undefined, source: Source): Part {
  return (facts) => {
    const items = query ? source.all(value, query, facts) : [value(facts)]
    const last = items.pop()
    if (last === undefined) return source.derive("list_empty", facts)
    if (items.length === 0) return last
    const separator = items.length > 1 ? source.derive("list_separator", facts) : ""
    return items.join(separator) + source.derive("list_last_separator", facts) + last
  }
}

/** Splits `value | query` and parses both parts. */
function readQuery(text: string, source: Source): [value: Part, query: Query | undefined] {
  const [value] = /^(?:'[^']*'|"[^"]*"|[^|'"])*/.exec(text)!
  const query = text.slice(value.length + 1)
  return [readValue(value, source), query.trim() === "" ? undefined : source.query(query)]
}

// Alternatives: text, symbol, variable with an optional attribute, operator.
const word = /\s*(?:'([^']*)'|"([^"]*)"|#([^#]+)#|([A-Za-z_]\w*)(?:\.(\w+))?|([+]))\s*/y

/** Parses `a + b or c`: sums, of which the first nonempty one is used. */
function readValue(text: string, source: Source): Part {
  const sums: Part[][] = [[]]
  let expectsOperand = true
  for (word.lastIndex = 0; word.lastIndex < text.length; ) {
    const [, single, double, symbol, variable, attribute, plus] =
      word.exec(text) ?? fault(`the value {${text}} in the grammar is invalid`)
    const isOperator = plus !== undefined || (variable === "or" && attribute === undefined)
    if (isOperator === expectsOperand) fault(`the value {${text}} in the grammar is invalid`)
    const literal = single ?? double
    if (isOperator) {
      if (!plus) sums.push([])
    } else if (literal !== undefined) sums.at(-1)!.push(() => literal)
    else if (symbol !== undefined) sums.at(-1)!.push((facts) => source.derive(symbol, facts))
    else sums.at(-1)!.push(attributePart(variable!, attribute ?? "", source))
    expectsOperand = isOperator
  }
  if (expectsOperand) fault(`the value {${text}} in the grammar is invalid`)
  return (facts) => {
    let result = ""
    for (const sum of sums) {
      result = ""
      for (const part of sum) result += part(facts)
      if (result !== "") break
    }
    return result
  }
}

function attributePart(variable: string, attribute: string, source: Source): Part {
  switch (attribute) {
    case "":
    case "name":
      return () => source.nameOf(source.idOf(variable))
    case "indefinite":
      return () => "a"
    case "definite":
      return () => "the"
    case "id":
      return () => source.idOf(variable)
    default:
      return fault(`the grammar has the unknown attribute ${variable}.${attribute}`)
  }
}
