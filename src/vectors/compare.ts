import { notes, type Results } from "./topic.ts"

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
  const visit = (where: string, wanted: unknown, got: unknown, masked: unknown): void => {
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
        if (!notes.includes(name)) visit(`${where} ${name}`, one, (got as Results | undefined)?.[name], masked)
      return
    }
    if (masked === 0) return
    compared++
    if (isClose(wanted, got)) return
    if (differ++ < 3) first.push({ where, expected: wanted, actual: got })
  }
  for (const [name, wanted] of Object.entries(expected)) {
    if (notes.includes(name)) continue
    const isTable = Array.isArray(wanted) && Array.isArray(wanted[0])
    visit(`${key} ${name}`, wanted, (actual as Results)[name], isTable ? mask : undefined)
  }
  return { compared, differ, first }
}

function isClose(wanted: unknown, got: unknown): boolean {
  if (typeof wanted !== "number" || typeof got !== "number") return wanted === got
  return Math.abs(got - wanted) <= tolerance * Math.max(1, Math.abs(wanted))
}
