import { expect, it } from "vitest"
import { reportsToCsv } from "../../../src/view/sinks/csv.ts"
import { reportsOf } from "../run-folder.ts"

/** RFC 4180, by its grammar. */
function parse(text: string): string[][] {
  const rows: string[][] = []
  const row: string[] = []
  const cells = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n)/gy
  for (const [, cell, end] of text.matchAll(cells)) {
    row.push(cell!.startsWith('"') ? cell!.slice(1, -1).replaceAll('""', '"') : cell!)
    if (end === "\r\n") rows.push(row.splice(0))
  }
  expect(rows.map((one) => one.map(quoted).join(",")).join("\r\n")).toBe(text.trimEnd())
  return rows
}

const quoted = (cell: string) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)

it("has a row a report and a column a number, exactly", () => {
  const reports = reportsOf(3)
  const [head, ...rows] = parse(reportsToCsv(reports))
  expect(head!.slice(0, 6)).toEqual([
    ...["iteration", "time", "episode/success", "episode/return", "time/run", "evaluation/success"],
  ])
  expect(rows.map((row) => row.length)).toEqual([head!.length, head!.length, head!.length])
  for (const [at, row] of rows.entries()) {
    const { iteration, time, metrics, evaluation } = reports[at]!
    const cells = Object.fromEntries(head!.map((name, column) => [name, row[column]!]))
    expect(cells).toMatchObject({ iteration: String(iteration), time, stopped: "" })
    expect(Number(cells["episode/return"])).toBe(metrics["episode/return"])
    expect(cells["evaluation/success-low"]).toBe(evaluation ? String(evaluation.successInterval[0]) : "")
  }
})

it("keeps commas, quotes and line feeds, and lets no spreadsheet compute what is text", () => {
  const metrics = {
    '=HYPERLINK("http://x","y")': 1,
    "@a,b": -2,
    "c\nd": 3,
    "+e": 4,
    "-f": 5,
    plain: Number.NaN,
    up: 1e300,
  }
  const rows = parse(reportsToCsv([{ iteration: 1, metrics, stopped: "=1+1" }]))
  expect(rows).toEqual([
    ["iteration", "time", '\'=HYPERLINK("http://x","y")', "'@a,b", "c\nd", "'+e", "'-f", "plain", "up", "stopped"],
    ["1", "", "1", "-2", "3", "4", "5", "NaN", "1e+300", "'=1+1"],
  ])
})

it("is a head alone where nothing was reported", () => {
  expect(reportsToCsv([])).toBe("iteration,time,stopped\r\n")
  expect(reportsToCsv([{ iteration: 3, update: 3, metrics: {} }])).toBe("update,time,stopped\r\n3,,\r\n")
})
