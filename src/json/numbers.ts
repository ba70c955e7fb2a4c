import { atOnce, type Pieces } from "../util/pace.ts"
import { canonicalInPieces } from "./canonical.ts"
import { readJsonInPieces } from "./pieces.ts"
import { replacedInPieces } from "./replaced.ts"

// JSON numbers as written, of any size and precision.

/**
 * `digits` times ten to the power of `exponent`. The digits, with a minus sign if negative, neither start nor end with
 * a zero; zero is "0". Digits stay text, since arithmetic with numbers of a megabyte is slow.
 */
interface Decimal {
  readonly digits: string
  readonly exponent: bigint
}

/** Maximum digits of an integer that is expanded. The largest double has 309. */
export const mostDigits = 400

/** Integer value of a JSON text (`2`, `2.0` or `20e-1`); undefined for other values, and beyond `mostDigits`. */
export function wholeNumber(text: string): bigint | undefined {
  const decimal = readDecimal(text)
  if (!decimal || decimal.exponent < 0n || BigInt(decimal.digits.length) + decimal.exponent > mostDigits)
    return undefined
  return BigInt(decimal.digits) * 10n ** decimal.exponent
}

/** Whether a JSON text is a number without a fraction, of any size. */
export function isWhole(text: string): boolean {
  const decimal = readDecimal(text)
  return decimal !== undefined && decimal.exponent >= 0n
}

/**
 * JSON text for comparisons: equal for texts of equal values, and that of `canonical` if doubles can represent the
 * numbers. Keys have a fixed order and numbers an exact canonical form: 1.0 and 1 are equal, 9007199254740993 and
 * 9007199254740992 are not.
 */
export function canonicalJson(text: string): string {
  return atOnce(canonicalJsonInPieces(text))
}

/** `canonicalJson` in short pieces of work. */
export function* canonicalJsonInPieces(text: string): Pieces<string> {
  const exact = yield* replacedInPieces(text, /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g, exactNumber)
  return yield* canonicalInPieces(yield* readJsonInPieces(exact, () => {}))
}

/** Number that a double cannot represent as an object, and everything else as it is. */
function exactNumber(part: string): string {
  if (part[0] === '"' || /^\d{1,15}$/.test(part)) return part
  const [decimal, double] = [readDecimal(part), readDecimal(JSON.stringify(Number(part)))]
  const kept = !decimal || (decimal.digits === double?.digits && decimal.exponent === double.exponent)
  return kept ? part : `{"":"${decimal.digits}e${decimal.exponent}"}`
}

function readDecimal(text: string): Decimal | undefined {
  const [, sign, whole, fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  if (whole === undefined || exponent.length > longestExponent) return undefined
  const all = whole + fraction
  let end = all.length
  while (all[end - 1] === "0") end--
  if (end === 0) return { digits: "0", exponent: 0n }
  const digits = all.slice(0, end).replace(/^0+/, "")
  return {
    digits: sign + digits,
    exponent: BigInt(exponent.replace("+", "")) - BigInt(fraction.length - (all.length - end)),
  }
}

/** Maximum characters of an exponent; numbers beyond it are compared as written. */
const longestExponent = 64
