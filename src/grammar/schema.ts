import { memberTexts, stringify } from "../json/text.ts"

/** JSON Schema other than a boolean. */
export type Schema = Readonly<Record<string, unknown>>

export function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

/** Members of a part of a schema with the JSON texts of their values. */
export function membersOf(part: object): ReadonlyMap<string, string> {
  return memberTexts(stringify(part))
}

export function member(schema: Schema, keyword: string): string {
  return membersOf(schema).get(keyword)!
}

/** Values that a schema lists, as JSON; undefined if there is no list. */
export function valuesOf(schema: Schema): readonly string[] | undefined {
  if ("const" in schema) return [member(schema, "const")]
  return Array.isArray(schema.enum) ? [...membersOf(schema.enum).values()] : undefined
}

/** Distinct types of a schema; undefined if it has none. */
export function typesOf({ type }: Schema): readonly unknown[] | undefined {
  return type === undefined ? undefined : [...new Set([type].flat())]
}
