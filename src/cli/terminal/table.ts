import { cellsOf } from "./cells.ts"

/** Rows as lines whose columns stand below each other, two spaces apart; `right` are those whose ends do. */
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
