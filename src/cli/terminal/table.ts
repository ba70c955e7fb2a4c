import { cellsOf } from "./cells.ts"

/** Formats rows as lines with aligned columns, two spaces apart. Columns in `right` are right-aligned. */
export function table(rows: readonly (readonly string[])[], right: readonly number[] = []): string[] {
  const count = Math.max(0, ...rows.map((row) => row.length))
  const widths = Array.from({ length: count }, (_, column) =>
    Math.max(...rows.map((row) => cellsOf(row[column] ?? ""))),
  )
  return rows.map((row) => {
    const cells = row.map((cell, column) => {
      const space = " ".repeat(widths[column]! - cellsOf(cell))
      return right.includes(column) ? space + cell : cell + space
    })
    return cells.join("  ").trimEnd()
  })
}
