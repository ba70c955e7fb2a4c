import { fail } from "./errors.ts"
import { refuseFilter } from "./filters.ts"
import { numberLiteral } from "./literals.ts"
import type { BinaryOperator, CallArguments, Expression, Operand } from "./nodes.ts"
import type { TokenStream } from "./token-stream.ts"

const comparisons = ["==", "!=", "<", "<=", ">", ">="] as const
const constants: ReadonlyMap<string, boolean | null> = new Map([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["none", null],
  ["None", null],
])
const noArguments: CallArguments = { positional: [], named: [], rest: undefined, namedRest: undefined }

export function parseExpression(stream: TokenStream, withCondition = true): Expression {
  return withCondition ? parseConditional(stream) : parseOr(stream)
}

function parseConditional(stream: TokenStream): Expression {
  let { line } = stream.current
  let expression = parseOr(stream)
  while (stream.skipName("if")) {
    const test = parseOr(stream)
    const otherwise = stream.skipName("else") ? parseConditional(stream) : undefined
    expression = { kind: "Conditional", test, value: expression, otherwise, line }
    line = stream.current.line
  }
  return expression
}

/** Operands of one precedence, from left to right. */
function parseLeft(
  stream: TokenStream,
  type: "name" | "operator",
  operators: readonly BinaryOperator[],
  operand: (stream: TokenStream) => Expression,
): Expression {
  let left = operand(stream)
  for (;;) {
    const operator = operators.find((candidate) => stream.skip(type, candidate))
    if (operator === undefined) return left
    left = { kind: "Binary", operator, left, right: operand(stream) }
  }
}

const parseOr = (stream: TokenStream): Expression => parseLeft(stream, "name", ["or"], parseAnd)
const parseAnd = (stream: TokenStream): Expression => parseLeft(stream, "name", ["and"], parseNot)

function parseNot(stream: TokenStream): Expression {
  if (!stream.skipName("not")) return parseCompare(stream)
  return { kind: "Unary", operator: "not", operand: parseNot(stream) }
}

function parseCompare(stream: TokenStream): Expression {
  const first = parseSum(stream)
  const rest: Operand[] = []
  for (;;) {
    const operator = comparison(stream)
    if (operator === undefined) return rest.length === 0 ? first : { kind: "Compare", first, rest }
    rest.push({ operator, value: parseSum(stream) })
  }
}

function comparison(stream: TokenStream): Operand["operator"] | undefined {
  if (stream.skipName("in")) return "in"
  if (stream.isName("not") && stream.following.type === "name" && stream.following.value === "in") {
    stream.next()
    stream.next()
    return "not in"
  }
  return comparisons.find((mark) => stream.skipMark(mark))
}

const parseSum = (stream: TokenStream): Expression => parseLeft(stream, "operator", ["+", "-"], parseConcat)

function parseConcat(stream: TokenStream): Expression {
  const items = [parseProduct(stream)]
  while (stream.skipMark("~")) items.push(parseProduct(stream))
  return items.length === 1 ? (items[0] as Expression) : { kind: "Concat", items }
}

const parseProduct = (stream: TokenStream): Expression =>
  parseLeft(stream, "operator", ["*", "/", "//", "%"], parsePower)
const parsePower = (stream: TokenStream): Expression =>
  parseLeft(stream, "operator", ["**"], (from) => parseUnary(from))

function parseUnary(stream: TokenStream, withFilter = true): Expression {
  const operator = (["-", "+"] as const).find((mark) => stream.skipMark(mark))
  const operand: Expression =
    operator === undefined ? parsePrimary(stream) : { kind: "Unary", operator, operand: parseUnary(stream, false) }
  const expression = parsePostfix(stream, operand)
  return withFilter ? parseFilters(stream, expression) : expression
}

export function parsePrimary(stream: TokenStream, withNamespace = false): Expression {
  const { type, value } = stream.current
  switch (type) {
    case "name":
      return parseName(stream, withNamespace)
    case "string": {
      let text = ""
      while (stream.is("string")) text += stream.next().value
      return { kind: "Constant", value: text }
    }
    case "integer":
    case "float":
      stream.next()
      return { kind: "Constant", value: numberLiteral(type, value) }
  }
  if (stream.skipMark("(")) {
    const tuple = parseTuple(stream, { parenthesized: true })
    stream.expectMark(")")
    return tuple
  }
  if (stream.skipMark("[")) return { kind: "List", items: parseItems(stream, "]", () => parseExpression(stream)) }
  if (stream.skipMark("{")) return { kind: "Dict", pairs: parseItems(stream, "}", () => parsePair(stream)) }
  return stream.fail(`unexpected '${stream.describe()}'`)
}

function parseName(stream: TokenStream, withNamespace: boolean): Expression {
  const name = stream.next().value
  const constant = constants.get(name)
  if (constant !== undefined) return { kind: "Constant", value: constant }
  if (withNamespace && stream.skipMark("."))
    return { kind: "NamespaceTarget", name, attribute: stream.expect("name").value }
  return { kind: "Name", name, role: "load" }
}

function parseItems<T>(stream: TokenStream, end: string, item: () => T): T[] {
  const items: T[] = []
  while (!stream.skipMark(end)) {
    if (items.length > 0) stream.expectMark(",")
    if (stream.isMark(end)) continue
    items.push(item())
  }
  return items
}

function parsePair(stream: TokenStream): readonly [Expression, Expression] {
  const key = parseExpression(stream)
  stream.expectMark(":")
  return [key, parseExpression(stream)]
}

export interface TupleOptions {
  /** Only names and literals. */
  readonly simple?: boolean
  readonly withCondition?: boolean
  /** Names that end the tuple. */
  readonly end?: string
  readonly parenthesized?: boolean
  readonly withNamespace?: boolean
}

/** An expression, or several with commas between them, which are a tuple. */
export function parseTuple(stream: TokenStream, options: TupleOptions = {}): Expression {
  const items: Expression[] = []
  let isTuple = false
  for (;;) {
    if (items.length > 0) stream.expectMark(",")
    const ends = stream.is("variable_end") || stream.is("block_end") || stream.isMark(")")
    if (ends || (options.end !== undefined && stream.isName(options.end))) break
    items.push(
      options.simple ? parsePrimary(stream, options.withNamespace) : parseExpression(stream, options.withCondition),
    )
    if (!stream.isMark(",")) break
    isTuple = true
  }
  if (isTuple) return { kind: "Tuple", items }
  if (items[0] !== undefined) return items[0]
  if (!options.parenthesized) stream.fail(`Expected an expression, got '${stream.describe()}'`)
  return { kind: "Tuple", items }
}

export function parsePostfix(stream: TokenStream, start: Expression): Expression {
  let expression = start
  for (;;) {
    if (stream.skipMark(".")) expression = parseDot(stream, expression)
    else if (stream.skipMark("[")) expression = parseSubscript(stream, expression)
    else if (stream.isMark("(")) expression = { kind: "Call", target: expression, args: parseArguments(stream) }
    else return expression
  }
}

function parseDot(stream: TokenStream, target: Expression): Expression {
  const { type, value } = stream.next()
  if (type === "name") return { kind: "Attribute", target, name: value }
  if (type !== "integer") stream.fail("expected name or number")
  return { kind: "Item", target, key: { kind: "Constant", value: numberLiteral("integer", value) } }
}

function parseSubscript(stream: TokenStream, target: Expression): Expression {
  const bound = () =>
    stream.isMark(":") || stream.isMark("]") || stream.isMark(",") ? undefined : parseExpression(stream)
  const start = bound()
  if (stream.skipMark(":")) {
    const stop = bound()
    const stride = stream.skipMark(":") ? bound() : undefined
    if (stream.isMark(",")) stream.unsupported("a slice among several subscripts")
    stream.expectMark("]")
    return { kind: "Slice", target, start, stop, stride }
  }
  if (start === undefined) {
    if (stream.isMark(",")) stream.fail("unexpected ','")
    stream.expectMark("]")
    return { kind: "Item", target, key: { kind: "Tuple", items: [] } }
  }
  const items = [start]
  while (!stream.skipMark("]")) {
    stream.expectMark(",")
    items.push(parseExpression(stream))
    if (stream.isMark(":")) stream.unsupported("a slice among several subscripts")
  }
  return { kind: "Item", target, key: items.length === 1 ? start : { kind: "Tuple", items } }
}

export function parseFilters(stream: TokenStream, start: Expression): Expression {
  let expression = start
  for (;;) {
    if (stream.isMark("|")) expression = parseFilter(stream, expression) as Expression
    else if (stream.isName("is")) expression = parseTest(stream, expression)
    else if (stream.isMark("(")) expression = { kind: "Call", target: expression, args: parseArguments(stream) }
    else return expression
  }
}

/** Filters, each after a "|", the first one without it where `inline`. */
export function parseFilter(
  stream: TokenStream,
  start: Expression | undefined,
  inline = false,
): Expression | undefined {
  let target = start
  let atName = inline
  while (atName || stream.skipMark("|")) {
    atName = false
    const name = parseDotted(stream)
    refuseFilter(name)
    target = { kind: "Filter", name, target, args: stream.isMark("(") ? parseArguments(stream) : noArguments }
  }
  return target
}

function parseDotted(stream: TokenStream): string {
  let name = stream.expect("name").value
  while (stream.skipMark(".")) name += `.${stream.expect("name").value}`
  return name
}

function parseTest(stream: TokenStream, target: Expression): Expression {
  stream.next()
  const negated = stream.skipName("not")
  const name = parseDotted(stream)
  const test: Expression = { kind: "Test", name, target, args: parseTestArguments(stream) }
  return negated ? { kind: "Unary", operator: "not", operand: test } : test
}

function parseTestArguments(stream: TokenStream): CallArguments {
  if (stream.isMark("(")) return parseArguments(stream)
  const literal = ["name", "string", "integer", "float"].includes(stream.current.type)
  const begins = literal || stream.isMark("[") || stream.isMark("{")
  if (!begins || ["else", "or", "and"].some((name) => stream.isName(name))) return noArguments
  if (stream.isName("is")) stream.fail("You cannot chain multiple tests with is")
  return { ...noArguments, positional: [parsePostfix(stream, parsePrimary(stream))] }
}

export function parseArguments(stream: TokenStream): CallArguments {
  const positional: Expression[] = []
  const named: { name: string; value: Expression }[] = []
  let rest: Expression | undefined
  let namedRest: Expression | undefined
  const ensure = (valid: boolean) => valid || stream.fail("invalid syntax for function call expression")
  stream.expectMark("(")
  for (let first = true; !stream.isMark(")"); first = false) {
    if (!first) stream.expectMark(",")
    if (!first && stream.isMark(")")) break
    if (stream.skipMark("*")) {
      ensure(rest === undefined && namedRest === undefined)
      rest = parseExpression(stream)
    } else if (stream.skipMark("**")) {
      ensure(namedRest === undefined)
      namedRest = parseExpression(stream)
    } else if (stream.is("name") && stream.following.type === "operator" && stream.following.value === "=") {
      ensure(namedRest === undefined)
      const name = stream.next().value
      stream.next()
      if (named.some((other) => other.name === name)) fail("TemplateSyntaxError", `keyword argument repeated: ${name}`)
      named.push({ name, value: parseExpression(stream) })
    } else {
      ensure(rest === undefined && namedRest === undefined && named.length === 0)
      positional.push(parseExpression(stream))
    }
  }
  stream.expectMark(")")
  return { positional, named, rest, namedRest }
}
