export type SqlValue = string | number | bigint | null | Uint8Array

export interface SqlResult {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly SqlValue[])[]
}

/** Result of a query. `error` is an error of the query, `failure` an error of the database. */
export type SqlAnswer = SqlResult | { readonly error: string } | { readonly failure: string }

/** Maximum length of a shown value in characters. */
const longestValue = 100

/** Text of a result for the model: column names, one line per row, and the number of rows that are not shown. */
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
