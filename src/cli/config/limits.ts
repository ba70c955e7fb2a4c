import { type CST, isMap, isScalar, isSeq, Lexer, Parser, type Scalar } from "yaml"

/**
 * What a YAML text is refused for before it is parsed as a whole, as it follows the name of the file in a message: groups and lists nested
 * beyond so many levels, or the first token that can stand nowhere. Of a hundred thousand such tokens the parser would make as many errors,
 * in seconds. The text is read piece by piece, without calls for each level.
 */
export function findRefused(text: string, levels: number): string | undefined {
  const parser = new Parser()
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) if (token.type === "error") return misplaced(token, text)
    if (parser.stack.length > levels) return ` is nested more than ${levels} deep: no configuration is.`
  }
  return undefined
}

function misplaced({ message, source, offset }: CST.ErrorToken, text: string): string {
  const line = text.slice(0, offset).split("\n").length
  return `, line ${line}: ${message}: ${JSON.stringify(source.slice(0, 100))}`
}

/** The first key of a group that stood in it before. */
export function findRepeatedKey(node: unknown): Scalar | undefined {
  if (isSeq(node)) return first(node.items)
  if (!isMap(node)) return undefined
  const known = new Set<unknown>()
  for (const { key } of node.items) {
    if (!isScalar(key)) continue
    if (known.has(key.value)) return key
    known.add(key.value)
  }
  return first(node.items.flatMap(({ key, value }) => [key, value]))
}

function first(nodes: readonly unknown[]): Scalar | undefined {
  for (const node of nodes) {
    const repeated = findRepeatedKey(node)
    if (repeated) return repeated
  }
  return undefined
}
