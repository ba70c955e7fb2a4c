import { lookUp, notes, type Results } from "./topic.ts"

export interface Difference {
  /** Which vector, and where in it: "gae/2 advantage[1][0]". */
  readonly where: string
  readonly expected: unknown
  readonly actual: unknown
}

export interface Comparison {
  readonly compared: number
  readonly differ: number
  readonly first: readonly Difference[]
}

/** |got - expected| <= tolerance · max(1, |expected|) */
const tolerance = 1e-6

/** Every number that is expected; what a table holds where its mask is 0 counts for nothing. */
export function compare(
  key: string,
  expected: Results,
  actual: Results | readonly unknown[],
  mask?: unknown,
): Comparison {
  let [compared, differ] = [0, 0]
  const first: Difference[] = []
  const visit = (where: string, wanted: unknown, found: unknown, masked: unknown): void => {
    const got = asListed(wanted, found)
    if (Array.isArray(wanted)) {
      for (const [i, one] of wanted.entries())
        visit(
          `${where}[${i}]`,
          one,
          (got as ArrayLike<unknown> | undefined)?.[i],
          (masked as unknown[] | undefined)?.[i],
        )
      return
    }
    if (typeof wanted === "object" && wanted !== null) {
      for (const [name, one] of Object.entries(wanted))
        if (!notes.includes(name)) visit(`${where} ${name}`, one, named(got, name), masked)
      return
    }
    if (masked === 0) return
    compared++
    if (isClose(wanted, got)) return
    if (differ++ < 3) first.push({ where, expected: wanted, actual: got })
  }
  if (typeof expected !== "object") visit(key, expected, actual, undefined)
  for (const [name, wanted] of Object.entries(expected)) {
    if (notes.includes(name)) continue
    const isTable = Array.isArray(wanted) && Array.isArray(wanted[0])
    visit(`${key} ${name}`, wanted, named(actual, name), isTable ? mask : undefined)
  }
  return { compared, differ, first }
}

function named(from: unknown, name: string): unknown {
  return typeof from === "object" && from !== null ? lookUp(from as Results, name) : undefined
}

/** A number alone and a list of one are the same. */
function asListed(wanted: unknown, got: unknown): unknown {
  if (!Array.isArray(wanted)) return Array.isArray(got) && got.length === 1 ? got[0] : got
  return wanted.length === 1 && (typeof got === "number" || typeof got === "boolean") ? [got] : got
}

/** Whether one number is the other; `true` and 1 are the same, and so are `null` and -1 or what is no number. */
function isClose(expected: unknown, actual: unknown): boolean {
  if (expected === null) return actual === null || Number.isNaN(actual)
  if (actual === null) return expected === -1
  const [wanted, got] = [expected, actual].map((one) => (typeof one === "boolean" ? Number(one) : one))
  if (typeof wanted !== "number" || typeof got !== "number") return wanted === got
  return Math.abs(got - wanted) <= tolerance * Math.max(1, Math.abs(wanted))
}
