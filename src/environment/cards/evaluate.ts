import { add, divide, floorDivide, multiply, type PythonNumber, power, subtract } from "./python-number.ts"

/**
 * Value of a formula of digits and `+ - * / ( )` as Python's `eval` computes it, or `undefined` if `eval` raises or gives no real number.
 * As in Python, adjacent elements join: two cards make a number of two digits, `*` `*` a power, `/` `/` a floor division; signs may be
 * repeated. Takes bounded time for every formula.
 *
 * Grammar (Python reference, 6. Expressions), in ascending order of precedence:
 *
 *     sum     = product (("+" | "-") product)*
 *     product = factor (("*" | "/" | "//") factor)*
 *     factor  = ("+" | "-") factor | power
 *     power   = atom ["**" factor]
 *     atom    = number | "(" sum ")"
 *
 * Python also has calls and tuples, `2(3)` and `()`; their result is never a number.
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

/** Operators of one precedence, from left to right. Undefined if an operand is undefined. */
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
  // Python rejects leading zeros, except in a number of zeros only.
  return /^(0+|[1-9]\d*)$/.test(token) ? BigInt(token) : undefined
}
