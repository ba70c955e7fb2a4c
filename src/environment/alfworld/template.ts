import type { Facts } from "./facts.ts"
import { fault } from "./fault.ts"
import type { Part } from "./narrator.ts"
import type { Query } from "./query.ts"

/** What a text is written from. */
interface Source {
  derive(symbol: string, facts: Facts): string
  all(expression: Part, query: Query, facts: Facts): string[]
  query(text: string): Query
  idOf(variable: string): string
  nameOf(id: string): string
}

// In turn: a list, a value or a concatenation (quotation marks hide braces), a symbol, other text; a lone mark stands
// for itself, as real grammars have such typos.
const piece =
  /\[\{((?:'[^']*'|"[^"]*"|[^{}'"])*)\}\]|\{((?:'[^']*'|"[^"]*"|[^{}'"])*)\}|#([^#{}\s][^#{}]*)#|[^[{#]+|[[{#]/y

/** The longest text of the real grammars, that of `help`, has about 1,000 characters. */
const maxLength = 10_000

/**
 * Reads a text with `#symbol#`, `{value}`, `{value | query}` (for every match, run together) and `[{value | query}]`
 * (the same, as a list). White space at its start is dropped, as the reference's parser does.
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

/** Splits `value | query` and reads both. */
function readQuery(text: string, source: Source): [value: Part, query: Query | undefined] {
  const [value] = /^(?:'[^']*'|"[^"]*"|[^|'"])*/.exec(text)!
  const query = text.slice(value.length + 1)
  return [readValue(value, source), query.trim() === "" ? undefined : source.query(query)]
}

// In turn: a text, a symbol, a variable with an attribute, an operator.
const word = /\s*(?:'([^']*)'|"([^"]*)"|#([^#]+)#|([A-Za-z_]\w*)(?:\.(\w+))?|([+]))\s*/y

/** Reads `a + b or c`: sums, of which the first that is not empty counts. */
function readValue(text: string, source: Source): Part {
  const sums: Part[][] = [[]]
  let expectsOperand = true
  for (word.lastIndex = 0; word.lastIndex < text.length; ) {
    const [, single, double, symbol, variable, attribute, plus] =
      word.exec(text) ?? fault(`the grammar has the value {${text}}`)
    const isOperator = plus !== undefined || (variable === "or" && attribute === undefined)
    if (isOperator === expectsOperand) fault(`the grammar has the value {${text}}`)
    const literal = single ?? double
    if (isOperator) {
      if (!plus) sums.push([])
    } else if (literal !== undefined) sums.at(-1)!.push(() => literal)
    else if (symbol !== undefined) sums.at(-1)!.push((facts) => source.derive(symbol, facts))
    else sums.at(-1)!.push(attributePart(variable!, attribute ?? "", source))
    expectsOperand = isOperator
  }
  if (expectsOperand) fault(`the grammar has the value {${text}}`)
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
      return fault(`the grammar asks for ${variable}.${attribute}, which is not known`)
  }
}
