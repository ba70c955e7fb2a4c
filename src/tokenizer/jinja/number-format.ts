import { fixed, scientific } from "./decimal.ts"
import { floatText } from "./print.ts"

/** The digits of a float, without a sign, as the types e, f and g of Python's formats write them. */
export function floatDigits(value: number, type: string, precision: number, alternate = false): string {
  const upper = type === type.toUpperCase() && type !== "%"
  const size = Math.abs(value)
  const text = Number.isFinite(size) ? finiteDigits(size, type.toLowerCase(), precision, alternate) : floatText(size)
  return upper ? text.toUpperCase() : text
}

function finiteDigits(size: number, type: string, precision: number, alternate: boolean): string {
  if (type === "f") return point(fixed(size, precision), alternate)
  if (type === "e") {
    const { digits, exponent } = scientific(size, precision)
    return exponential(digits, exponent, alternate)
  }
  const significant = precision === 0 ? 1 : precision
  const { digits, exponent } = scientific(size, significant - 1)
  const kept = alternate ? digits : digits.replace(/0+$/, "") || "0"
  if (exponent < -4 || exponent >= significant) return exponential(kept, exponent, alternate)
  if (exponent < 0) return `0.${"0".repeat(-exponent - 1)}${kept}`
  const padded = kept.padEnd(exponent + 1, "0")
  const decimals = padded.slice(exponent + 1)
  return point(decimals === "" ? padded : `${padded.slice(0, exponent + 1)}.${decimals}`, alternate)
}

function exponential(digits: string, exponent: number, alternate: boolean): string {
  const mantissa = digits.length > 1 ? `${digits[0]}.${digits.slice(1)}` : point(digits, alternate)
  return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`
}

const point = (digits: string, alternate: boolean) => (alternate && !digits.includes(".") ? `${digits}.` : digits)

export function isNegative(value: bigint | number): boolean {
  return value < 0 || Object.is(value, -0)
}

const bases: Readonly<Record<string, number>> = { b: 2, o: 8, x: 16, d: 10 }

/** The digits of an integer, without a sign, in the base of a type b, o, d, x or X. */
export function intDigits(value: bigint, type: string, alternate: boolean): { prefix: string; digits: string } {
  const digits = (value < 0n ? -value : value).toString(bases[type.toLowerCase()])
  const prefix = alternate && type !== "d" ? `0${type}` : ""
  return { prefix, digits: type === "X" ? digits.toUpperCase() : digits }
}
