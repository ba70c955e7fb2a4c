import { table } from "./arguments.ts"
import { binary } from "./arithmetic.ts"
import { type Comparison, compare, contains, equal } from "./compare.ts"
import { Dict } from "./dict.ts"
import { unsupported } from "./errors.ts"
import { str } from "./print.ts"
import { isCase } from "./text-methods.ts"
import { isIterable, isList, Markup, PyObject, Range, Tuple, typeName, Undefined, type Value } from "./values.ts"

const remainder = (value: Value, by: Value) => equal(binary("%", value, by), 0n)
const order = (operator: Comparison) => (value: Value, other: Value) => compare(operator, value, other)
const unequal = (value: Value, other: Value) => !equal(value, other)
const isNumber = (value: Value) => ["bigint", "number", "boolean"].includes(typeof value)

function isSequence(value: Value): boolean {
  if (typeof value === "string" || isList(value)) return true
  return [Tuple, Dict, Range, Undefined, Markup].some((type) => value instanceof type)
}

/** Python's `is`. Identity of equal numbers or strings is implementation-defined in Python. */
function same(value: Value, other: Value): boolean {
  if (value !== other) return false
  if (["string", "bigint", "number"].includes(typeof value) || value instanceof Tuple)
    unsupported(`the test sameas between two of ${typeName(value)}`)
  return true
}

/** Tests by name, without `filter` and `test`, which need the tables of filters and tests. */
export const tests = table({
  "boolean(value)": (value: Value) => typeof value === "boolean",
  "callable(obj/)": (value: Value) =>
    value instanceof Undefined || (value instanceof PyObject && value.call !== undefined),
  "defined(value)": (value: Value) => !(value instanceof Undefined),
  "divisibleby(value num)": remainder,
  "escaped(value)": (value: Value) => value instanceof Markup,
  "even(value)": (value: Value) => remainder(value, 2n),
  "false(value)": (value: Value) => value === false,
  "float(value)": (value: Value) => typeof value === "number",
  "in(value seq)": (value: Value, container: Value) => contains(container, value),
  "integer(value)": (value: Value) => typeof value === "bigint",
  "iterable(value)": isIterable,
  "lower(value)": (value: Value) => isCase(str(value), "lower"),
  "mapping(value)": (value: Value) => value instanceof Dict,
  "none(value)": (value: Value) => value === null,
  "number(value)": isNumber,
  "odd(value)": (value: Value) => equal(binary("%", value, 2n), 1n),
  "sameas(value other)": same,
  "sequence(value)": isSequence,
  "string(value)": (value: Value) => typeof value === "string" || value instanceof Markup,
  "true(value)": (value: Value) => value === true,
  "undefined(value)": (value: Value) => value instanceof Undefined,
  "upper(value)": (value: Value) => isCase(str(value), "upper"),
  "eq(a/ b/)": equal,
  "equalto(a/ b/)": equal,
  "==(a/ b/)": equal,
  "ne(a/ b/)": unequal,
  "!=(a/ b/)": unequal,
  "gt(a/ b/)": order(">"),
  "greaterthan(a/ b/)": order(">"),
  ">(a/ b/)": order(">"),
  "ge(a/ b/)": order(">="),
  ">=(a/ b/)": order(">="),
  "lt(a/ b/)": order("<"),
  "lessthan(a/ b/)": order("<"),
  "<(a/ b/)": order("<"),
  "le(a/ b/)": order("<="),
  "<=(a/ b/)": order("<="),
})
