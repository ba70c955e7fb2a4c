import { describe, expect, it } from "vitest"
import { type SqlValue, showResult } from "../../../src/environment/sql/answer.ts"
import { isOrdered } from "../../../src/environment/sql/episode.ts"
import { sameRows } from "../../../src/environment/sql/same-rows.ts"
import { Random } from "../../../src/util/random.ts"

const result = (...rows: SqlValue[][]) => ({ columns: (rows[0] ?? []).map((_, i) => `c${i}`), rows })

describe("execution match", () => {
  it.each<[string, SqlValue[][], SqlValue[][], boolean, boolean]>([
    ["another order", [[1, "a"], [2, "b"]], [[2, "b"], [1, "a"]], false, true],
    ["another order where it counts", [[1], [2]], [[2], [1]], true, false],
    ["as often each", [[1], [1], [2]], [[1], [2], [2]], false, false],
    ["a row less", [[1], [1]], [[1]], false, false],
    ["other columns", [[1, 2]], [[2, 1]], false, false],
    ["2 and 2.0, and large numbers", [[2, 9007199254740993n]], [[2.0, 9007199254740993n]], false, true],
    ["the last digits", [[0.1 + 0.2]], [[0.3]], false, true],
    ["the last digits of sums, rows in another order", [[1e6 / 3, "a"], [1, "b"]], [[1, "b"], [1e6 / 3 + 1e-4, "a"]], false, true],
    ["near the border of a rounding", [[0.99999999, 2], [1, 1]], [[1, 2], [0.99999999, 1]], false, true],
    ["more than the last digits", [[1]], [[1.001]], false, false],
    ["another date", [[20230101]], [[20230115]], false, false],
    ["another date, in order", [[20230101]], [[20230115]], true, false],
    ["another date beside a sum", [[20230101], [0.5]], [[20230102], [0.5]], false, false],
    ["another large number", [[9007199254740993n]], [[9007199254740995n]], false, false],
    ["a whole number and nearly one", [[3]], [[2.9999999]], false, true],
    ["whole numbers that cannot stand for each other", [[1e8 + 1], [1e8 + 1.5]], [[1e8 + 2], [1e8 + 2.5]], false, true],
    ["another cent", [[12345.67]], [[12345.68]], false, false],
    ["no end", [[Number.POSITIVE_INFINITY]], [[1.5]], false, false],
    ["texts that look like the keys of two columns", [["a,b", "c"]], [["a", "b,c"]], false, false],
    ["numbers and texts", [[1]], [["1"]], false, false],
    ["nothing and zero", [[null]], [[0]], false, false],
    ["nothing", [[null]], [[null]], false, true],
    ["blobs", [[new Uint8Array([1])]], [[new Uint8Array([1])]], false, true],
    ["other blobs", [[new Uint8Array([1])]], [[new Uint8Array([2])]], false, false],
  ])("%s", (_, a, b, ordered, same) => {
    expect(sameRows(result(...a), result(...b), ordered)).toBe(same)
  }) // biome-ignore format: a table

  /** All orders of a list. */
  const orders = <T>(of: readonly T[]): T[][] =>
    of.length === 0 ? [[]] : of.flatMap((one, i) => orders(of.toSpliced(i, 1)).map((rest) => [one, ...rest]))

  it.each<[string, SqlValue[][]]>([
    ["a chain of numbers, each near the next", [[1.1], [1.10000008], [1.10000016]]],
    ["in two columns", [[1.1, 2.2], [1.10000008, 2.2000003], [1.10000016, 2.2], [1.1, 2.2000001]]],
    ["among texts, nothing and whole numbers", [[1.1, "a"], [1.10000008, null], [3, "a"], [2.9999999, "a"]]],
  ])("each order is the same rows: %s", (_, rows) => {
    for (const order of orders(rows)) expect(sameRows(result(...rows), result(...order), false)).toBe(true)
  }) // biome-ignore format: a table

  it("equals a matching of all equal rows", () => {
    const random = new Random(1)
    const value = () => [1, 1.00000008, 1.00000016, 1.00000024, 2][random.below(5)]!
    const seen = new Set<boolean>()
    for (let i = 0; i < 2000; i++) {
      const [a, b] = [0, 1].map(() => Array.from({ length: 4 }, () => [value(), value()])) as [number[][], number[][]]
      const same = sameRows(result(...a), result(...b), false)
      expect(same).toBe(orders(b).some((order) => sameRows(result(...a), result(...order), true)))
      seen.add(same)
    }
    expect(seen.size).toBe(2)
  })

  it("ignores column names, but compares their number, even without rows", () => {
    expect(sameRows({ columns: ["a"], rows: [] }, { columns: ["b"], rows: [] }, false)).toBe(true)
    expect(sameRows({ columns: ["a"], rows: [] }, { columns: ["a", "b"], rows: [] }, false)).toBe(false)
  })

  it.each([
    ["SELECT a FROM t ORDER BY a", true],
    ["SELECT a FROM t order\n by a LIMIT 1", true],
    ["SELECT a FROM (SELECT a FROM t ORDER BY (a)) GROUP BY a", false],
    ["SELECT ' ORDER BY ' FROM t -- ORDER BY", false],
  ])("%s is ordered: %s", (sql, ordered) => {
    expect(isOrdered(sql)).toBe(ordered)
  })
})

it("limits the shown rows and values", () => {
  expect(showResult(result([1, null], [new Uint8Array([255]), "a\nb"], [3, 4]), 2)).toBe(
    "c0 | c1\n1 | NULL\nx'ff' | a b\n… 1 more rows",
  )
  expect(showResult(result(["x".repeat(1000)]), 1)).toBe(`c0\n${"x".repeat(100)}…`)
  expect(showResult({ columns: ["a"], rows: [] }, 1)).toBe("a\n(no rows)")
})
