import { nearestName } from "./nearest.ts"
import { newName } from "./renamed.ts"

/** The keys of a table, to know others by. */
export function keysOf(table: object): Readonly<Record<string, true>> {
  return Object.fromEntries(Object.keys(table).map((key) => [key, true as const]))
}

/**
 * Says of the first key in `given` that is not known what was probably meant; undefined where all are known. The instance of a class
 * may hold more than it is asked for.
 */
export function unknownKey(given: object, known: Readonly<Record<string, true>>): string | undefined {
  const prototype: unknown = Object.getPrototypeOf(given)
  if (prototype !== null && prototype !== Object.prototype) return undefined
  const key = Object.keys(given).find((one) => !Object.hasOwn(known, one))
  if (key === undefined) return undefined
  const names = Object.keys(known)
  const renamed = newName([key], names)
  if (renamed) return `"${key}" was renamed to "${renamed.join(".")}"`
  const near = nearestName(key, names)
  return `"${key}" is not known (${near === undefined ? `known: ${names.join(", ")}` : `did you mean "${near}"?`})`
}
