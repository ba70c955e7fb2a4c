import { choice, impossible, later, type Node, optional, repeat, sequence, text } from "./node.ts"

// Numbers of JSON (RFC 8259 §6), all or within bounds. Bounds are integers. Numbers within bounds have no exponent.

const digit: Node = { kind: "bytes", ranges: [[0x30, 0x39]] }
const positiveDigit: Node = { kind: "bytes", ranges: [[0x31, 0x39]] }
const zero = text("0")
const minus = text("-")
const natural: Node = choice([zero, sequence(positiveDigit, repeat(digit, 0, Number.POSITIVE_INFINITY))])
const digits: Node = repeat(digit, 1, Number.POSITIVE_INFINITY)

export const integer: Node = sequence(optional(minus), natural)

/** Number with an exponent of at most two digits, because numbers above 1e308 are read as infinite. */
export const number: Node = sequence(
  integer,
  optional(sequence(text("."), digits)),
  optional(sequence(choice([text("e"), text("E")]), optional(choice([text("+"), minus])), repeat(digit, 1, 2))),
)

export interface Bounds {
  readonly low: bigint | undefined
  readonly high: bigint | undefined
  /** Whether the lower bound is exclusive. */
  readonly aboveLow: boolean
  /** Whether the upper bound is exclusive. */
  readonly belowHigh: boolean
}

/** Integers within bounds. */
export function integerBetween({ low, high, aboveLow, belowHigh }: Bounds): Node {
  const least = low === undefined ? undefined : low + (aboveLow ? 1n : 0n)
  const most = high === undefined ? undefined : high - (belowHigh ? 1n : 0n)
  return later(() => signed(least, most, (from, to) => naturalBetween(from, to)))
}

/** Numbers within bounds. */
export function numberBetween(bounds: Bounds): Node {
  return later(() => signedBetween(bounds))
}

function signedBetween({ low, high, aboveLow, belowHigh }: Bounds): Node {
  const positive = realBetween(max(low, 0n), low !== undefined && low >= 0n && aboveLow, high, belowHigh)
  const parts: Node[] = high === undefined || high >= 0n ? [positive] : []
  if (low === undefined || low < 0n) {
    const from = high !== undefined && high < 0n ? -high : 0n
    const above = high !== undefined && high < 0n ? belowHigh : true // -0 is 0, which is written without a sign
    parts.push(sequence(minus, realBetween(from, above, low === undefined ? undefined : -low, aboveLow)))
  }
  return choice(parts)
}

function signed(
  low: bigint | undefined,
  high: bigint | undefined,
  between: (low: bigint, high: bigint | undefined) => Node,
): Node {
  const parts: Node[] = []
  if (high === undefined || high >= 0n) parts.push(between(max(low, 0n), high))
  if (low === undefined || low < 0n)
    parts.push(
      sequence(minus, between(high === undefined || high >= -1n ? 1n : -high, low === undefined ? undefined : -low)),
    )
  return choice(parts)
}

function max(value: bigint | undefined, least: bigint): bigint {
  return value === undefined || value < least ? least : value
}

const someFraction: Node = optional(sequence(text("."), digits))
const zeroFraction: Node = optional(sequence(text("."), repeat(zero, 1, Number.POSITIVE_INFINITY)))
const realFraction: Node = sequence(
  text("."),
  repeat(digit, 0, Number.POSITIVE_INFINITY),
  positiveDigit,
  repeat(digit, 0, Number.POSITIVE_INFINITY),
)

/** Non-negative numbers within bounds, by integer part: the bounds' integer parts allow fewer fractions than those between. */
function realBetween(low: bigint, above: boolean, high: bigint | undefined, below: boolean): Node {
  if (high !== undefined && low > high) return impossible
  if (low === high) return above || below ? impossible : sequence(text(`${low}`), zeroFraction)
  const first = sequence(text(`${low}`), above ? realFraction : someFraction)
  const between = sequence(naturalBetween(low + 1n, high === undefined ? undefined : high - 1n), someFraction)
  const last = high === undefined || below ? [] : [sequence(text(`${high}`), zeroFraction)]
  return choice([first, between, ...last])
}

/** Non-negative integers within bounds, without leading zeros. */
function naturalBetween(low: bigint, high: bigint | undefined): Node {
  if (high !== undefined && low > high) return impossible
  const parts: Node[] = []
  const longest = high === undefined ? `${low}`.length : `${high}`.length
  for (let length = `${low}`.length; length <= longest; length++) {
    const from = max(length === 1 ? 0n : 10n ** BigInt(length - 1), low)
    const largest = 10n ** BigInt(length) - 1n
    const to = high !== undefined && high < largest ? high : largest
    parts.push(sameLength(`${from}`, `${to}`))
  }
  if (high === undefined)
    parts.push(sequence(positiveDigit, repeat(digit, longest, longest), repeat(digit, 0, Number.POSITIVE_INFINITY)))
  return choice(parts)
}

/** Integers within bounds of equal length, digit by digit. */
function sameLength(from: string, to: string): Node {
  if (/^0*$/.test(from) && /^9*$/.test(to)) return repeat(digit, from.length, from.length)
  const [low, high, rest] = [Number(from[0]), Number(to[0]), from.length - 1]
  const followed = (a: number, b: number, node: Node): Node =>
    sequence({ kind: "bytes", ranges: [[0x30 + a, 0x30 + b]] }, node)
  if (low === high) return followed(low, high, sameLength(from.slice(1), to.slice(1)))
  const parts = [
    followed(low, low, sameLength(from.slice(1), "9".repeat(rest))),
    followed(high, high, sameLength("0".repeat(rest), to.slice(1))),
  ]
  if (low + 1 < high) parts.push(followed(low + 1, high - 1, repeat(digit, rest, rest)))
  return choice(parts)
}
