import { memberTexts, stringify } from "../json/text.ts"

/** A JSON Schema that is no boolean. */
export type Schema = Readonly<Record<string, unknown>>

export function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

/** Members of a part of a schema, as they are written. */
export function membersOf(part: object): ReadonlyMap<string, string> {
  return memberTexts(stringify(part))
}

export function member(schema: Schema, keyword: string): string {
  return membersOf(schema).get(keyword)!
}

/** All values that a schema allows, as JSON, where it lists them. */
export function valuesOf(schema: Schema): readonly string[] | undefined {
  if ("const" in schema) return [member(schema, "const")]
  return Array.isArray(schema.enum) ? [...membersOf(schema.enum).values()] : undefined
}

/** The types of a schema, each once; undefined where it names none. */
export function typesOf({ type }: Schema): readonly unknown[] | undefined {
  return type === undefined ? undefined : [...new Set([type].flat())]
}
