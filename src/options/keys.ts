import type { Choice, Entry, Fields } from "./table.ts"

/** A key of a table, with what stands above it. */
export interface Key {
  readonly path: readonly string[]
  readonly entry: Entry
}

/** Every key below a table, each group before the keys in it; of a choice the options of what `given` has chosen. */
export function walk(fields: Fields, given: unknown, above: readonly string[] = []): Key[] {
  return Object.entries(fields).flatMap(([name, entry]) => {
    const path = [...above, name]
    const value = (given as Record<string, unknown> | null | undefined)?.[name]
    return [{ path, entry }, ...walk(fieldsOf(entry, value), value, path)]
  })
}

/** What stands in an entry. */
export function fieldsOf(entry: Entry, given: unknown): Fields {
  if ("variants" in entry) return { ...chosen(entry, given), ...entry.common }
  if ("fields" in entry) return entry.fields
  return typeof given === "object" && given !== null ? (entry.objectForm ?? {}) : {}
}

function chosen(choice: Choice, given: unknown): Fields | undefined {
  const { name = choice.default, use } = (given ?? {}) as Readonly<Record<string, unknown>>
  return use === undefined && Object.hasOwn(choice.variants, String(name)) ? choice.variants[String(name)] : {}
}

/** The paths of all keys, those that choose included. */
export function listKeys(fields: Fields, given: unknown, above: readonly string[] = []): (readonly string[])[] {
  return walk(fields, given, above).flatMap(({ path, entry }) =>
    "variants" in entry ? [path, [...path, "name"], [...path, "use"]] : [path],
  )
}
