import { numeric } from "./compare.ts"
import { quotient } from "./decimal.ts"
import { fail, unsupported } from "./errors.ts"
import { limited, reserve } from "./limits.ts"
import { printf } from "./printf.ts"
import { isList, Markup, Tuple, typeName, Undefined, type Value } from "./values.ts"

export type Operator = "+" | "-" | "*" | "/" | "//" | "%" | "**"
type Numeric = bigint | number

/** A binary operation with Python's types. */
export function binary(operator: Operator, a: Value, b: Value): Value {
  const [x, y] = [numeric(a), numeric(b)]
  if (x !== undefined && y !== undefined) return calculate(operator, x, y)
  if (typeof a === "string" && operator === "%") return printf(a, b)
  for (const value of [a, b]) {
    if (value instanceof Undefined) value.raise()
    if (value instanceof Markup) unsupported("calculating with escaped or safe text")
  }
  if (operator === "+") return concatenate(a, b)
  if (operator === "*" && isSequence(a)) return repeat(a, b)
  if (operator === "*" && isSequence(b)) return repeat(b, a)
  return mismatch(operator, a, b)
}

function mismatch(operator: Operator, a: Value, b: Value): never {
  return fail("TypeError", `unsupported operand type(s) for ${operator}: '${typeName(a)}' and '${typeName(b)}'`)
}

type Sequence = string | readonly Value[] | Tuple
const isSequence = (value: Value): value is Sequence =>
  typeof value === "string" || isList(value) || value instanceof Tuple

function concatenate(a: Value, b: Value): Value {
  if (typeof a === "string" && typeof b === "string") return limited(a + b)
  if (isList(a) && isList(b)) return limited([...a, ...b])
  if (a instanceof Tuple && b instanceof Tuple) return new Tuple(limited([...a.items, ...b.items]))
  if (isSequence(a))
    return fail("TypeError", `can only concatenate ${typeName(a)} (not "${typeName(b)}") to ${typeName(a)}`)
  return mismatch("+", a, b)
}

function repeat(sequence: Sequence, by: Value): Value {
  const count = numeric(by)
  if (typeof count !== "bigint") fail("TypeError", `can't multiply sequence by non-int of type '${typeName(by)}'`)
  if (count >= 2n ** 63n || count < -(2n ** 63n)) fail("OverflowError", "cannot fit 'int' into an index-sized integer")
  const times = count > 0n ? Number(count) : 0
  const unit = sequence instanceof Tuple ? sequence.items : sequence
  reserve(unit.length * times)
  if (typeof unit === "string") return unit.repeat(unit.length === 0 ? 0 : times)
  const items = Array.from({ length: unit.length * times }, (_, index) => unit[index % unit.length] as Value)
  return sequence instanceof Tuple ? new Tuple(items) : items
}

function calculate(operator: Operator, x: Numeric, y: Numeric): Value {
  if (typeof x === "bigint" && typeof y === "bigint") return integers(operator, x, y)
  return floats(operator, toFloat(x), toFloat(y))
}

/** Converts an integer to a float; fails for integers that are too large, as Python does. */
export function toFloat(value: Numeric): number {
  const float = Number(value)
  if (typeof value === "bigint" && !Number.isFinite(float)) fail("OverflowError", "int too large to convert to float")
  return float
}

function integers(operator: Operator, x: bigint, y: bigint): Value {
  switch (operator) {
    case "+":
      return bounded(x + y)
    case "-":
      return bounded(x - y)
    case "*":
      return bounded(x * y)
    case "**":
      return y < 0n ? power(toFloat(x), toFloat(y)) : integerPower(x, y)
  }
  if (y === 0n) fail("ZeroDivisionError", operator === "/" ? "division by zero" : "integer division or modulo by zero")
  if (operator === "/") {
    const result = quotient(x, y)
    return Number.isFinite(result) ? result : fail("OverflowError", "integer division result too large for a float")
  }
  const rest = x % y
  const floored = rest !== 0n && rest < 0n !== y < 0n
  if (operator === "%") return floored ? rest + y : rest
  return floored ? x / y - 1n : x / y
}

/** Checks an integer against the limits if it is large. */
function bounded(value: bigint): bigint {
  if (value > -(2n ** 256n) && value < 2n ** 256n) return value
  reserve(value.toString(16).length)
  return value
}

function integerPower(base: bigint, exponent: bigint): bigint {
  const bits = base >= -1n && base <= 1n ? 1 : base.toString(2).length
  reserve((bits * Number(exponent)) / 4)
  return base ** exponent
}

function floats(operator: Operator, x: number, y: number): number {
  switch (operator) {
    case "+":
      return x + y
    case "-":
      return x - y
    case "*":
      return x * y
    case "**":
      return power(x, y)
  }
  if (y === 0) fail("ZeroDivisionError", operator === "%" ? "float modulo" : "float division by zero")
  if (operator === "/") return x / y
  const rest = x % y
  const floored = rest !== 0 && rest < 0 !== y < 0
  if (operator === "%") return floored ? rest + y : rest === 0 ? (y < 0 ? -0 : 0) : rest
  const exact = (x - rest) / y - Number(floored)
  if (exact === 0) return x / y < 0 || Object.is(x / y, -0) ? -0 : 0
  return Math.abs(exact - Math.floor(exact)) > 0.5 ? Math.floor(exact) + 1 : Math.floor(exact)
}

function power(x: number, y: number): number {
  if (x === 0 && y < 0) fail("ZeroDivisionError", "0.0 cannot be raised to a negative power")
  if (x === 1 || y === 0) return 1
  if (x < 0 && Number.isFinite(x) && Number.isFinite(y) && !Number.isInteger(y)) unsupported("a complex number")
  if (x === -1 && !Number.isFinite(y)) return Number.isNaN(y) ? y : 1
  const result = x ** y
  if (!Number.isFinite(result) && Number.isFinite(x) && Number.isFinite(y))
    fail("OverflowError", "(34, 'Numerical result out of range')")
  return result
}

/** Unary plus or minus. */
export function signed(operator: "+" | "-", value: Value): Value {
  if (value instanceof Undefined) value.raise()
  const number = numeric(value)
  if (number === undefined) return fail("TypeError", `bad operand type for unary ${operator}: '${typeName(value)}'`)
  return operator === "-" ? -number : number
}
