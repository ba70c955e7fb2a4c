import type { SqlResult, SqlValue } from "./answer.ts"

type Row = readonly SqlValue[]

/** Relative tolerance of equal numbers, because floating-point sums depend on the order of rows. */
const tolerance = 1e-7

/** Maximum size of a group of similar rows for which a matching is searched. */
const mostMatched = 256

/**
 * Whether two results are equal by execution match: the same multiset of rows, and the same order if `ordered`. Column names are ignored;
 * 2 and 2.0 are equal. Integers (dates, keys, counts) must be equal exactly, other numbers within a relative tolerance of 1e-7.
 */
export function sameRows(a: SqlResult, b: SqlResult, ordered: boolean): boolean {
  if (a.rows.length !== b.rows.length || a.columns.length !== b.columns.length) return false
  if (ordered) return inOrder(a.rows, b.rows)
  const keyOf = keysOf([...a.rows, ...b.rows], a.columns.length)
  const [left, right] = [groupsOf(a.rows, keyOf), groupsOf(b.rows, keyOf)]
  return [...left].every(([key, rows]) => haveMatching(rows, right.get(key) ?? []))
}

function inOrder(a: readonly Row[], b: readonly Row[]): boolean {
  return a.every((row, i) => sameRow(row, b[i]!))
}

function groupsOf(rows: readonly Row[], keyOf: (row: Row) => string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const key = keyOf(row)
    const group = groups.get(key)
    if (group) group.push(row)
    else groups.set(key, [row])
  }
  return groups
}

/** Keys of rows. Equal rows have equal keys. So may rows whose numbers are connected by a chain of close numbers. */
function keysOf(rows: readonly Row[], columns: number): (row: Row) => string {
  const names = Array.from({ length: columns }, (_, i) => nameNumbers(rows.map((row) => row[i]!).filter(isNumber)))
  return (row) =>
    row
      .map((value, i) => {
        if (isNumber(value)) return names[i]!(value)
        return value instanceof Uint8Array ? `x${Buffer.from(value).toString("hex")}` : JSON.stringify(value)
      })
      .join()
}

/** Names the numbers of a column: numbers have different names if a gap larger than the tolerance lies between them. */
function nameNumbers(numbers: readonly (number | bigint)[]): (value: number | bigint) => number | bigint {
  if (numbers.every(isWhole)) return (value) => value
  const names = new Map<number | bigint, number>()
  let before: number | bigint | undefined
  for (const value of numbers.toSorted(compareNumbers)) {
    names.set(value, before !== undefined && isNear(before, value) ? names.get(before)! : names.size)
    before = value
  }
  return (value) => names.get(value)!
}

/**
 * Whether there is a one-to-one matching of equal rows. Equality within a tolerance is not transitive, so no order gives the matching. The
 * sorted order is tried first. For groups larger than `mostMatched`, only the sorted order is tried.
 */
function haveMatching(a: readonly Row[], b: readonly Row[]): boolean {
  if (a.length !== b.length) return false
  const [left, right] = [a.toSorted(compareRows), b.toSorted(compareRows)]
  if (inOrder(left, right)) return true
  if (left.length > mostMatched) return false
  const givenTo: (Row | undefined)[] = []
  /** Searches an augmenting path: a row that is already matched is reassigned if its partner can be matched to another row. */
  const give = (row: Row, seen: Set<number>): boolean =>
    right.some((other, i) => {
      if (seen.has(i) || !sameRow(row, other)) return false
      seen.add(i)
      if (givenTo[i] && !give(givenTo[i], seen)) return false
      givenTo[i] = row
      return true
    })
  return left.every((row) => give(row, new Set()))
}

/** Order of two rows with the same key, which differ only in their numbers. */
function compareRows(a: Row, b: Row): number {
  for (const [i, value] of a.entries()) {
    const order = isNumber(value) ? compareNumbers(value, b[i] as number | bigint) : 0
    if (order !== 0) return order
  }
  return 0
}

function compareNumbers(a: number | bigint, b: number | bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function sameRow(a: Row, b: Row): boolean {
  return a.every((value, i) => sameValue(value, b[i]!))
}

function sameValue(a: SqlValue, b: SqlValue): boolean {
  if (isNumber(a) && isNumber(b)) return isWhole(a) && isWhole(b) ? BigInt(a) === BigInt(b) : isNear(a, b)
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0
  return a === b
}

function isNear(a: number | bigint, b: number | bigint): boolean {
  const [x, y] = [Number(a), Number(b)]
  const largest = Math.max(Math.abs(x), Math.abs(y))
  return x === y || (largest < Number.POSITIVE_INFINITY && Math.abs(x - y) <= tolerance * largest)
}

/** Whether a number is an integer of SQLite, or a real number with an exact integer value (below 2^53). */
function isWhole(value: number | bigint): boolean {
  return typeof value === "bigint" || Number.isSafeInteger(value)
}

function isNumber(value: SqlValue): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint"
}
