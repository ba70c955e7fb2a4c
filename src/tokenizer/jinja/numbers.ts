import { toFloat } from "./arithmetic.ts"
import { numeric } from "./compare.ts"
import { scaledInteger } from "./decimal.ts"
import { fail, isKind, unsupported } from "./errors.ts"
import { step } from "./limits.ts"
import { strip } from "./text-methods.ts"
import { isAscii } from "./unicode.ts"
import { typeName, Undefined, type Value } from "./values.ts"

/** int() of a text in a base of 2 to 36, or of 0 for the base that its prefix names. */
export function parseInteger(source: string, base: number): bigint {
  const invalid = (): never => fail("ValueError", `invalid literal for int() with base ${base}: '${source}'`)
  if (base !== 0 && (base < 2 || base > 36)) fail("ValueError", "int() base must be >= 2 and <= 36, or 0")
  const [, sign, body] = /^([+-]?)(.*)$/s.exec(strip(source)) as unknown as [string, string, string]
  if (!isAscii(body) && /\p{Nd}/u.test(body)) unsupported("a number with digits other than 0 to 9")
  const prefix = /^0([box])_?/i.exec(body)
  const named = prefix === null ? undefined : { b: 2, o: 8, x: 16 }[prefix[1]?.toLowerCase() as "b" | "o" | "x"]
  const prefixed = named !== undefined && (base === 0 || base === named)
  const digits = prefixed ? body.slice((prefix as RegExpExecArray)[0].length) : body
  const radix = prefixed ? named : base === 0 ? 10 : base
  if (base === 0 && !prefixed && /^0[_0]*[1-9]/.test(digits)) invalid()
  if (!/^[0-9a-z]+(_[0-9a-z]+)*$/i.test(digits)) invalid()
  if (radix === 10 && digits.length > 4300)
    fail("ValueError", "Exceeds the limit (4300 digits) for integer string conversion")
  let value = 0n
  for (const char of digits.replaceAll("_", "")) {
    const digit = Number.parseInt(char, 36)
    step(digits.length)
    if (digit >= radix) invalid()
    value = value * BigInt(radix) + BigInt(digit)
  }
  return sign === "-" ? -value : value
}

/** float() of a text. */
export function parseFloatText(source: string): number {
  const body = strip(source)
  if (!isAscii(body) && /\p{Nd}/u.test(body)) unsupported("a number with digits other than 0 to 9")
  const special = /^([+-]?)(inf|infinity|nan)$/i.exec(body)
  if (special !== null)
    return special[2]?.toLowerCase() === "nan" ? Number.NaN : special[1] === "-" ? -Infinity : Infinity
  if (!/^[+-]?(\d+(_\d+)*\.?|\d+(_\d+)*\.\d+(_\d+)*|\.\d+(_\d+)*)(e[+-]?\d+(_\d+)*)?$/i.test(body))
    fail("ValueError", `could not convert string to float: '${source}'`)
  return Number(body.replaceAll("_", ""))
}

/** int() of a number. */
export function truncate(value: number): bigint {
  if (Number.isNaN(value)) fail("ValueError", "cannot convert float NaN to integer")
  if (!Number.isFinite(value)) fail("OverflowError", "cannot convert float infinity to integer")
  return BigInt(Math.trunc(value))
}

/** float() of any value. */
export function float(value: Value): number {
  if (value instanceof Undefined) value.raise()
  if (typeof value === "string") return parseFloatText(value)
  const number = numeric(value)
  if (number !== undefined) return toFloat(number)
  return fail("TypeError", `float() argument must be a string or a real number, not '${typeName(value)}'`)
}

function int(value: Value, base: number): bigint {
  if (value instanceof Undefined) value.raise()
  if (typeof value === "string") return parseInteger(value, base)
  const number = numeric(value)
  if (typeof number === "number") return truncate(number)
  return number ?? fail("TypeError", `int() argument must be a string or a real number, not '${typeName(value)}'`)
}

/** The filter `int`. */
export function intFilter(value: Value, fallback: Value, base: number): Value {
  try {
    return int(value, base)
  } catch (error) {
    if (!isKind(error, "TypeError", "ValueError")) throw error
  }
  try {
    return truncate(float(value))
  } catch (error) {
    if (isKind(error, "TypeError", "ValueError", "OverflowError")) return fallback
    throw error
  }
}

/** The filter `float`. */
export function floatFilter(value: Value, fallback: Value): Value {
  try {
    return float(value)
  } catch (error) {
    if (isKind(error, "TypeError", "ValueError")) return fallback
    throw error
  }
}

/** The filter `round`. */
export function round(value: Value, digits: number, method: Value): Value {
  if (method !== "common" && method !== "ceil" && method !== "floor")
    return fail("TypeError", "method must be common, ceil or floor")
  if (value instanceof Undefined)
    return method === "common" ? fail("TypeError", "type Undefined doesn't define __round__ method") : value.raise()
  const number = numeric(value)
  if (number === undefined) return fail("TypeError", `type ${typeName(value)} doesn't define __round__ method`)
  if (method !== "common") return roundTowards(number, digits, method)
  if (typeof number === "bigint") return digits >= 0 ? number : scaledInteger(number, digits) * 10n ** BigInt(-digits)
  if (!Number.isFinite(number) || digits > 323) return number
  if (digits < -308) return number < 0 ? -0 : 0
  const rounded = scaledInteger(number, digits)
  const result = Number(`${rounded}e${-digits}`)
  return result === 0 && (number < 0 || Object.is(number, -0)) ? -0 : result
}

function roundTowards(number: bigint | number, digits: number, method: "ceil" | "floor"): number {
  const scale = (value: bigint | number) =>
    digits >= 0 && typeof value === "bigint" ? value * 10n ** BigInt(digits) : Number(value) * 10 ** digits
  const scaled = scale(number)
  const whole = typeof scaled === "bigint" ? scaled : truncate(Math[method](scaled))
  return digits >= 0 ? Number(whole) / 10 ** digits : Number(whole) / 10 ** digits
}

/** The filter `filesizeformat`. */
export function fileSize(value: Value, binary: boolean, decimal: (value: number) => string): string {
  const bytes = float(value)
  const base = binary ? 1024 : 1000
  if (bytes === 1) return "1 Byte"
  if (bytes < base) return `${truncate(bytes)} Bytes`
  const units = [..."kMGTPEZY"].map((unit) => (binary ? `${unit.toUpperCase()}iB` : `${unit}B`))
  const at = units.findIndex((_, power) => bytes < base ** (power + 2))
  const power = at < 0 ? units.length - 1 : at
  return `${decimal((base * bytes) / base ** (power + 2))} ${units[power]}`
}
