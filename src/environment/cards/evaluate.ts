import { add, divide, floorDivide, multiply, type PythonNumber, power, subtract } from "./python-number.ts"

/**
 * What Python's `eval` makes of a formula of digits, `+ - * / ( )`, or `undefined` where it raises or gives no real number.
 * So elements that stand side by side join: two cards make a number of two digits, `*` `*` a power, `/` `/` a floor division;
 * signs may be repeated. Takes bounded time, whatever the formula.
 *
 * Grammar (Python reference, 6. Expressions), each line binding tighter than the one above it:
 *
 *     sum     = product (("+" | "-") product)*
 *     product = factor (("*" | "/" | "//") factor)*
 *     factor  = ("+" | "-") factor | power
 *     power   = atom ["**" factor]
 *     atom    = number | "(" sum ")"
 *
 * Python also knows calls and tuples, `2(3)` and `()`; no number ever comes of them.
 */
export function evaluate(formula: string): PythonNumber | undefined {
  const tokens = formula.match(/\d+|\*\*|\/\/|[-+*/()]|\S/g) ?? []
  const parser = { tokens, next: 0 }
  const value = sum(parser)
  return parser.next === tokens.length ? value : undefined
}

interface Parser {
  readonly tokens: readonly string[]
  next: number
}

type Operation = (a: PythonNumber, b: PythonNumber) => PythonNumber | undefined
type Value = PythonNumber | undefined

function sum(parser: Parser): Value {
  return chain(parser, product, { "+": add, "-": subtract })
}

function product(parser: Parser): Value {
  return chain(parser, factor, { "*": multiply, "/": divide, "//": floorDivide })
}

/** Operators of one rank, from left to right. A part that has no value leaves the whole without one. */
function chain(
  parser: Parser,
  part: (parser: Parser) => Value,
  operations: Readonly<Record<string, Operation>>,
): Value {
  let value = part(parser)
  for (;;) {
    const operation = operations[parser.tokens[parser.next] ?? ""]
    if (!operation || value === undefined) return value
    parser.next++
    const right = part(parser)
    value = right === undefined ? undefined : operation(value, right)
  }
}

function factor(parser: Parser): Value {
  const sign = parser.tokens[parser.next]
  if (sign !== "+" && sign !== "-") return powerOf(parser)
  parser.next++
  const value = factor(parser)
  return sign === "-" && value !== undefined ? -value : value
}

function powerOf(parser: Parser): Value {
  const base = atom(parser)
  if (parser.tokens[parser.next] !== "**" || base === undefined) return base
  parser.next++
  const exponent = factor(parser)
  return exponent === undefined ? undefined : power(base, exponent)
}

function atom(parser: Parser): Value {
  const token = parser.tokens[parser.next++]
  if (token === undefined) return undefined
  if (token === "(") {
    const value = sum(parser)
    return parser.tokens[parser.next++] === ")" ? value : undefined
  }
  // Python refuses zeros before a number, though not a row of zeros.
  return /^(0+|[1-9]\d*)$/.test(token) ? BigInt(token) : undefined
}
