import { reserve } from "./limits.ts"

/** Exact fraction of a finite float. The denominator is a power of two. */
export function fraction(value: number): { readonly numerator: bigint; readonly denominator: bigint } {
  let exponent = 0
  let scaled = value
  while (!Number.isInteger(scaled)) {
    scaled *= 2
    exponent++
  }
  return { numerator: BigInt(scaled), denominator: 1n << BigInt(exponent) }
}

/** value × 10^digits as the nearest integer, ties to even. Exact. */
export function scaledInteger(value: number | bigint, digits: number): bigint {
  reserve(Math.abs(digits))
  const { numerator, denominator } = typeof value === "bigint" ? { numerator: value, denominator: 1n } : fraction(value)
  const power = 10n ** BigInt(Math.abs(digits))
  return digits >= 0 ? divideToEven(numerator * power, denominator) : divideToEven(numerator, denominator * power)
}

function divideToEven(numerator: bigint, denominator: bigint): bigint {
  const negative = numerator < 0n
  const size = negative ? -numerator : numerator
  const twice = (size % denominator) * 2n
  let quotient = size / denominator
  if (twice > denominator || (twice === denominator && quotient % 2n === 1n)) quotient++
  return negative ? -quotient : quotient
}

/** Digits of a non-negative number with a given number of decimals. */
export function fixed(value: number | bigint, decimals: number): string {
  const digits = scaledInteger(value, decimals)
    .toString()
    .padStart(decimals + 1, "0")
  return decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}

/** Digits of a non-negative finite float with one digit before the point, and its power of ten. */
export function scientific(value: number, decimals: number): { readonly digits: string; readonly exponent: number } {
  if (value === 0) return { digits: "0".repeat(decimals + 1), exponent: 0 }
  let exponent = Number(value.toExponential().split("e")[1])
  let digits = scaledInteger(value, decimals - exponent).toString()
  if (digits.length > decimals + 1) {
    exponent++
    digits = scaledInteger(value, decimals - exponent).toString()
  }
  return { digits, exponent }
}

/** a / b for integers as the nearest float, ties to even. b is not 0. */
export function quotient(a: bigint, b: bigint): number {
  const safe = BigInt(Number.MAX_SAFE_INTEGER)
  if (a >= -safe && a <= safe && b >= -safe && b <= safe) return Number(a) / Number(b)
  const negative = a < 0n !== b < 0n
  const [top, bottom] = [a < 0n ? -a : a, b < 0n ? -b : b]
  const bits = (value: bigint) => value.toString(2).length
  // 64 bits and a sticky bit are enough for Number() to round correctly.
  const shift = Math.max(66 - (bits(top) - bits(bottom)), -1074)
  const [scaledTop, scaledBottom] = shift >= 0 ? [top << BigInt(shift), bottom] : [top, bottom << BigInt(-shift)]
  const whole = (scaledTop / scaledBottom) * 2n + BigInt(scaledTop % scaledBottom !== 0n)
  const value = Number(whole) / 2 ** Math.min(shift + 1, 1000) / 2 ** Math.max(shift + 1 - 1000, 0)
  return negative ? -value : value
}
