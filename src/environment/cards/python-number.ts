/**
 * Python's numbers, as far as a formula of cards can make them: integers of any size (`bigint`) and floats (`number`).
 * `undefined` stands for everything that is no real number there: an exception, or a complex result, which no further
 * card could bring back to a whole number.
 */
export type PythonNumber = bigint | number

/**
 * No integer of more bits is computed. Such a power uses up three cards at least, and what one more card and signs can make of
 * it is nowhere near a target, so the answer "no number" is as good as Python's, which may take hours.
 */
const maxBits = 20_000n
/** Beyond this exponent a float power is left to Math.pow: it is 0, overflows, or its base is next to 1. */
const maxExactExponent = 1024

export function add(a: PythonNumber, b: PythonNumber): PythonNumber | undefined {
  if (typeof a === "bigint" && typeof b === "bigint") return a + b
  return onFloats(a, b, (x, y) => x + y)
}

export function subtract(a: PythonNumber, b: PythonNumber): PythonNumber | undefined {
  if (typeof a === "bigint" && typeof b === "bigint") return a - b
  return onFloats(a, b, (x, y) => x - y)
}

export function multiply(a: PythonNumber, b: PythonNumber): PythonNumber | undefined {
  if (typeof a === "bigint" && typeof b === "bigint") return a * b
  return onFloats(a, b, (x, y) => x * y)
}

/** `/`: of integers, too, the float nearest to the true quotient. */
export function divide(a: PythonNumber, b: PythonNumber): PythonNumber | undefined {
  if (Number(b) === 0) return undefined
  if (typeof a === "bigint" && typeof b === "bigint") return finite(nearestQuotient(a, b))
  return onFloats(a, b, (x, y) => x / y)
}

/** `//`: rounds towards minus infinity, of floats as CPython's `float_floor_div` does it. */
export function floorDivide(a: PythonNumber, b: PythonNumber): PythonNumber | undefined {
  if (Number(b) === 0) return undefined
  if (typeof a === "bigint" && typeof b === "bigint") {
    const quotient = a / b
    return quotient * b !== a && a < 0n !== b < 0n ? quotient - 1n : quotient
  }
  return onFloats(a, b, (x, y) => {
    const remainder = x % y
    const quotient = (x - remainder) / y - (remainder !== 0 && y < 0 !== remainder < 0 ? 1 : 0)
    if (quotient === 0) return 0 * (x / y)
    const floor = Math.floor(quotient)
    return quotient - floor > 0.5 ? floor + 1 : floor
  })
}

/** `**`: an integer for integers unless the exponent is negative. */
export function power(base: PythonNumber, exponent: PythonNumber): PythonNumber | undefined {
  if (typeof base === "bigint" && typeof exponent === "bigint" && exponent >= 0n) {
    const size = base < 0n ? -base : base
    if (size > 1n && BigInt(bitLength(size)) * exponent > maxBits) return undefined
    return size > 1n || exponent < 2n ? base ** exponent : base ** (2n - (exponent % 2n))
  }
  return onFloats(base, exponent, (x, y) => {
    if (x === 0 && y < 0) return undefined
    // Math.pow's last bit may differ from Python's, which can matter only where the result is rational: for whole exponents.
    const exact = Number.isInteger(y) && Math.abs(y) <= maxExactExponent && Number.isFinite(x) && x !== 0
    const result = exact ? wholePower(x, y) : x ** y
    // Not finite: an overflow, which Python raises for powers alone, or a complex number, which JavaScript calls NaN.
    return finite(result)
  })
}

/** Python turns both into floats first, and raises where an integer is too large for one. */
function onFloats(
  a: PythonNumber,
  b: PythonNumber,
  operation: (x: number, y: number) => number | undefined,
): number | undefined {
  const [x, y] = [Number(a), Number(b)]
  if (typeof a === "bigint" && !Number.isFinite(x)) return undefined
  if (typeof b === "bigint" && !Number.isFinite(y)) return undefined
  return operation(x, y)
}

function finite(value: number): number | undefined {
  return Number.isFinite(value) ? value : undefined
}

/** The float nearest to x ** y for a whole y. */
function wholePower(x: number, y: number): number {
  let doublings = 0
  for (; !Number.isInteger(x); doublings++) x *= 2
  const size = BigInt(Math.abs(y))
  const [numerator, denominator] = [BigInt(x) ** size, 2n ** (BigInt(doublings) * size)]
  return y < 0 ? nearestQuotient(denominator, numerator) : nearestQuotient(numerator, denominator)
}

/** a / b to the nearest float, ties to even: 66 bits of the quotient and a bit for the rest decide. */
function nearestQuotient(a: bigint, b: bigint): number {
  const negative = a < 0n !== b < 0n
  const [top, bottom] = [a < 0n ? -a : a, b < 0n ? -b : b]
  const shift = 66 - bitLength(top) + bitLength(bottom)
  const scaled = shift > 0 ? top << BigInt(shift) : top
  const divisor = shift > 0 ? bottom : bottom << BigInt(-shift)
  const sticky = scaled % divisor === 0n ? 0n : 1n
  // In two steps, as 2 ** -shift alone may be out of a float's range.
  const half = Math.trunc(-shift / 2)
  const size = Number(((scaled / divisor) << 1n) | sticky) * 2 ** half * 2 ** (-shift - half - 1)
  return negative ? -size : size
}

function bitLength(value: bigint): number {
  return value === 0n ? 0 : value.toString(2).length
}
