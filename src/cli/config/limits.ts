import { type CST, isMap, isScalar, isSeq, Lexer, Parser, type Scalar } from "yaml"

/**
 * Checks a YAML text before it is parsed as a whole. Returns the end of a message, after the file name, if groups and
 * lists are nested deeper than `levels` or if a token is misplaced; else undefined. The full parser would produce one
 * error per misplaced token, which takes seconds for a hostile text. This check is iterative.
 */
export function findRefused(text: string, levels: number): string | undefined {
  const parser = new Parser()
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) if (token.type === "error") return misplaced(token, text)
    if (parser.stack.length > levels) return ` is nested more than ${levels} levels deep.`
  }
  return undefined
}

function misplaced({ message, source, offset }: CST.ErrorToken, text: string): string {
  const line = text.slice(0, offset).split("\n").length
  return `, line ${line}: ${message}: ${JSON.stringify(source.slice(0, 100))}`
}

/** First key of a group that repeats an earlier one. */
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
