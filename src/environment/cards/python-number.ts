/**
 * Python's numbers, as far as a formula of cards can produce them: integers of any size (`bigint`) and floats (`number`).
 * Functions return `undefined` for an exception or a complex result, which no further card could turn into an integer.
 */
export type PythonNumber = bigint | number

/**
 * Maximum number of bits of an integer. A larger power uses at least three cards, and one more card cannot bring it near a target.
 * So `undefined` gives the same outcome as Python's result, whose computation may take hours.
 */
const maxBits = 20_000n
/** Exponent above which a float power is computed by Math.pow: the result is 0, overflows, or its base is close to 1. */
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

/** Python's `/`. For integers, too, the result is the float nearest to the quotient. */
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
    // Math.pow's last bit may differ from Python's, which can matter only if the result is rational: for integer exponents.
    const exact = Number.isInteger(y) && Math.abs(y) <= maxExactExponent && Number.isFinite(x) && x !== 0
    const result = exact ? wholePower(x, y) : x ** y
    // A result that is not finite is an overflow, for which Python raises in powers only, or a complex number, which is NaN in JavaScript.
    return finite(result)
  })
}

/** Applies an operation to floats. Python converts both operands to floats and raises if an integer is too large. */
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

/** Float nearest to x ** y for an integer y. */
function wholePower(x: number, y: number): number {
  let doublings = 0
  for (; !Number.isInteger(x); doublings++) x *= 2
  const size = BigInt(Math.abs(y))
  const [numerator, denominator] = [BigInt(x) ** size, 2n ** (BigInt(doublings) * size)]
  return y < 0 ? nearestQuotient(denominator, numerator) : nearestQuotient(numerator, denominator)
}

/** a / b rounded to the nearest float, ties to even, from 66 bits of the quotient and a sticky bit. */
function nearestQuotient(a: bigint, b: bigint): number {
  const negative = a < 0n !== b < 0n
  const [top, bottom] = [a < 0n ? -a : a, b < 0n ? -b : b]
  const shift = 66 - bitLength(top) + bitLength(bottom)
  const scaled = shift > 0 ? top << BigInt(shift) : top
  const divisor = shift > 0 ? bottom : bottom << BigInt(-shift)
  const sticky = scaled % divisor === 0n ? 0n : 1n
  // In two steps, because 2 ** -shift may be out of a float's range.
  const half = Math.trunc(-shift / 2)
  const size = Number(((scaled / divisor) << 1n) | sticky) * 2 ** half * 2 ** (-shift - half - 1)
  return negative ? -size : size
}

function bitLength(value: bigint): number {
  return value === 0n ? 0 : value.toString(2).length
}
