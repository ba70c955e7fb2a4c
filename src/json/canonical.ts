/** JSON text that is equal for equal values, whatever the order of object members. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part) =>
    isPlain(part) ? Object.fromEntries(Object.entries(part).sort(byKey)) : part,
  )
}

function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

/** Compares by code units, independent of the locale. */
function byKey([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : Number(a > b)
}
