/** A value as JSON, the same for equal ones in whatever order the members of their objects come. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part) =>
    isPlain(part) ? Object.fromEntries(Object.entries(part).sort(byKey)) : part,
  )
}

function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

/** By code units, whatever the language of the machine. */
function byKey([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : Number(a > b)
}
