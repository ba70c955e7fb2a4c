export type SqlValue = string | number | bigint | null | Uint8Array

export interface SqlResult {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly SqlValue[])[]
}

/** What came of a query. An `error` is the query's own fault, a `failure` the database's. */
export type SqlAnswer = SqlResult | { readonly error: string } | { readonly failure: string }

/** Longest value that is shown. */
const longestValue = 100

/** The result as a model reads it: names, then a line a row, of which the last say how many more there are. */
export function showResult({ columns, rows }: SqlResult, most: number): string {
  const lines = rows.slice(0, most).map((row) => row.map(showValue).join(" | "))
  if (rows.length > most) lines.push(`… ${rows.length - most} more rows`)
  return [columns.join(" | "), ...(rows.length === 0 ? ["(no rows)"] : lines)].join("\n")
}

function showValue(value: SqlValue): string {
  if (value === null) return "NULL"
  const text =
    value instanceof Uint8Array ? `x'${Buffer.from(value.subarray(0, longestValue)).toString("hex")}'` : `${value}`
  const shown = text.replace(/\s+/g, " ")
  return shown.length > longestValue ? `${shown.slice(0, longestValue)}…` : shown
}
