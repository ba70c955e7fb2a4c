import { nearestName } from "./nearest.ts"
import { newName } from "./renamed.ts"

/** Returns the keys of a table, as `unknownKey` takes them. */
export function keysOf(table: object): Readonly<Record<string, true>> {
  return Object.fromEntries(Object.keys(table).map((key) => [key, true as const]))
}

/**
 * Returns a message about the first unknown key of an object, with a suggestion. undefined if all keys are known, and for instances of
 * classes, which may have more keys.
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
