import type { Choice, Entry, OptionFields } from "./table.ts"

/** Key of a table, with the path of groups that leads to it. */
export interface Key {
  readonly path: readonly string[]
  readonly entry: Entry
}

/** Returns all keys below a table, each group before its keys. Of a choice, the options of the variant that `given` selects. */
export function walk(fields: OptionFields, given: unknown, above: readonly string[] = []): Key[] {
  return Object.entries(fields).flatMap(([name, entry]) => {
    const path = [...above, name]
    const value = (given as Record<string, unknown> | null | undefined)?.[name]
    return [{ path, entry }, ...walk(fieldsOf(entry, value), value, path)]
  })
}

/** Returns the options inside an entry, for the value that is given. */
export function fieldsOf(entry: Entry, given: unknown): OptionFields {
  if ("variants" in entry) return { ...chosen(entry, given), ...entry.common }
  if ("fields" in entry) return entry.fields
  return typeof given === "object" && given !== null ? (entry.objectForm ?? {}) : {}
}

function chosen(choice: Choice, given: unknown): OptionFields | undefined {
  const { name = choice.default, use } = (given ?? {}) as Readonly<Record<string, unknown>>
  return use === undefined && Object.hasOwn(choice.variants, String(name)) ? choice.variants[String(name)] : {}
}

/** Returns the paths of all keys that are not hidden, with `name` and `use` of each choice. */
export function listKeys(fields: OptionFields, given: unknown, above: readonly string[] = []): (readonly string[])[] {
  return walk(fields, given, above).flatMap(({ path, entry }) => {
    if ("hidden" in entry) return []
    return "variants" in entry ? [path, [...path, "name"], [...path, "use"]] : [path]
  })
}
