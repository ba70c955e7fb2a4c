import { toFloat } from "./arithmetic.ts"
import { numeric } from "./compare.ts"
import { Dict } from "./dict.ts"
import { fail } from "./errors.ts"
import { limited, reserve } from "./limits.ts"
import { floatDigits, intDigits, isNegative } from "./number-format.ts"
import { ascii, repr, str } from "./print.ts"
import { given, isList, Tuple, textLength, typeName, Undefined, type Value } from "./values.ts"

interface Conversion {
  readonly flags: string
  readonly width: number
  readonly precision: number | undefined
  readonly type: string
}

const conversion = /%(?:\(([^()]*)\))?([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?[hlL]?(.?)/gsu

/** The operator % of a str. */
export function printf(format: string, argument: Value): string {
  const values = argument instanceof Tuple ? argument.items : [argument]
  const mapping = !(argument instanceof Tuple) && typeof argument !== "string" && hasItems(argument)
  let next = 0
  let byName = false
  const take = () => {
    if (byName || next >= values.length) fail("TypeError", "not enough arguments for format string")
    return values[next++] as Value
  }
  const size = (given: string | undefined) => (given === "*" ? starred(take()) : Number(given ?? ""))
  const result = format.replace(conversion, (_, key: string | undefined, flags, width, precision, type) => {
    if (type === "") fail("ValueError", "incomplete format")
    let named: Value | undefined
    if (key !== undefined) {
      if (!mapping) fail("TypeError", "format requires a mapping")
      byName = true
      named = item(argument, key)
    }
    const wide = size(width)
    const exact = precision === undefined ? undefined : Math.max(size(precision), 0)
    if (type === "%") return "%"
    const spec = { flags: wide < 0 ? `${flags}-` : flags, width: Math.abs(wide), precision: exact, type }
    reserve(spec.width + (exact ?? 0))
    return pad(spec, convert(spec, given(named, take)))
  })
  if (!byName && !mapping && next < values.length)
    fail("TypeError", "not all arguments converted during string formatting")
  return limited(result)
}

const hasItems = (value: Value) => value instanceof Dict || isList(value) || value instanceof Undefined

function starred(value: Value): number {
  return typeof value === "bigint" && value < 2n ** 31n && value > -(2n ** 31n)
    ? Number(value)
    : fail("TypeError", "* wants int")
}

function item(mapping: Value, key: string): Value {
  if (mapping instanceof Undefined) mapping.raise()
  if (!(mapping instanceof Dict)) fail("TypeError", "list indices must be integers or slices, not str")
  return given(mapping.get(key), () => fail("KeyError", repr(key)))
}

interface Converted {
  readonly sign: string
  readonly prefix: string
  readonly body: string
  readonly zeros: boolean
}

function convert(spec: Conversion, value: Value): Converted {
  const { type, precision, flags } = spec
  const words = (text: string) => {
    const body = precision === undefined ? text : Array.from(text).slice(0, precision).join("")
    return { sign: "", prefix: "", body, zeros: false }
  }
  if (type === "s") return words(str(value))
  if (type === "r") return words(repr(value))
  if (type === "a") return words(ascii(value))
  if (type === "c") return { ...words(character(value)), zeros: false }
  const sign = (negative: boolean) => (negative ? "-" : flags.includes("+") ? "+" : flags.includes(" ") ? " " : "")
  if ("diuoxX".includes(type)) {
    const integer = asInteger(value, type)
    const { prefix, digits } = intDigits(integer, type === "i" || type === "u" ? "d" : type, flags.includes("#"))
    return { sign: sign(integer < 0n), prefix, body: digits.padStart(precision ?? 0, "0"), zeros: true }
  }
  if (!"eEfFgG".includes(type))
    fail("ValueError", `unsupported format character '${type}' (0x${type.charCodeAt(0).toString(16)})`)
  const float = asFloat(value)
  const body = floatDigits(float, type, precision ?? 6, flags.includes("#"))
  return { sign: sign(isNegative(float)), prefix: "", body, zeros: true }
}

function pad({ flags, width }: Conversion, { sign, prefix, body, zeros }: Converted): string {
  const missing = Math.max(width - textLength(sign + prefix + body), 0)
  if (flags.includes("-")) return sign + prefix + body + " ".repeat(missing)
  if (zeros && flags.includes("0")) return sign + prefix + "0".repeat(missing) + body
  return " ".repeat(missing) + sign + prefix + body
}

function character(value: Value): string {
  if (typeof value === "string" && textLength(value) === 1) return value
  const code = numeric(value)
  if (typeof code !== "bigint") return fail("TypeError", "%c requires int or char")
  if (code < 0n || code > 0x10ffffn) fail("OverflowError", "%c arg not in range(0x110000)")
  return String.fromCodePoint(Number(code))
}

function asInteger(value: Value, type: string): bigint {
  if (value instanceof Undefined && "diu".includes(type)) value.raise()
  const number = numeric(value)
  if (typeof number === "bigint") return number
  if (typeof number !== "number" || "oxX".includes(type))
    return fail("TypeError", `%${type} format: a real number is required, not ${typeName(value)}`)
  if (Number.isFinite(number)) return BigInt(Math.trunc(number))
  return fail(Number.isNaN(number) ? "ValueError" : "OverflowError", "cannot convert float to integer")
}

function asFloat(value: Value): number {
  if (value instanceof Undefined) value.raise()
  const number = numeric(value)
  return number === undefined ? fail("TypeError", `must be real number, not ${typeName(value)}`) : toFloat(number)
}
