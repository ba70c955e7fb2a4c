import type { IterationReport } from "../../runs/report.ts"
import { scalarsOf } from "../data/scalars.ts"

/**
 * Reports as a table for spreadsheets (RFC 4180), with one row per report and one column per metric, in order of first appearance. The first
 * column is the iteration, or the update of a supervised fine-tuning. Missing metrics are empty cells.
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
  const counted = reports.some(({ update }) => update !== undefined) ? "update" : "iteration"
  return [[counted, "time", ...names, "stopped"], ...lines].map((cells) => `${cells.map(cell).join(",")}\r\n`).join("")
}

function cell(value: string | number | undefined): string {
  if (typeof value !== "string") return value === undefined ? "" : String(value)
  // A spreadsheet would evaluate it as a formula.
  const harmless = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}
