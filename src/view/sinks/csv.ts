import type { IterationReport } from "../../runs/report.ts"
import { scalarsOf } from "../data/scalars.ts"

/**
 * Reports as a table for spreadsheets (RFC 4180): a row a report, a column a number, in the order in which their names first appear.
 * What a report does not have is an empty cell.
 */
export function reportsToCsv(reports: readonly IterationReport[]): string {
  const rows = reports.map((report) => ({ report, numbers: scalarsOf(report) }))
  const names = [...new Set(rows.flatMap(({ numbers }) => Object.keys(numbers)))]
  const lines = rows.map(({ report: { iteration, time, stopped }, numbers }) => [
    iteration,
    time,
    ...names.map((name) => numbers[name]),
    stopped,
  ])
  return [["iteration", "time", ...names, "stopped"], ...lines]
    .map((cells) => `${cells.map(cell).join(",")}\r\n`)
    .join("")
}

function cell(value: string | number | undefined): string {
  if (typeof value !== "string") return value === undefined ? "" : String(value)
  // A spreadsheet would compute it.
  const harmless = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}
