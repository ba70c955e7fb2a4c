import { canonicalJson } from "../../json/numbers.ts"
import { stringify } from "../../json/text.ts"
import { isObject } from "../../options/read.ts"

/**
 * Where a value violates types, members, items or constants of a JSON schema, as a sentence without the full stop;
 * undefined if it does not. Other keywords are ignored; tools with `strict: true` are constrained by all of them.
 */
export function schemaProblem(value: unknown, schema: unknown, at: string): string | undefined {
  if (schema === false) return `${at} is not allowed`
  if (!isObject(schema)) return undefined
  const types = schema.type === undefined ? [] : [schema.type].flat()
  if (types.length > 0 && !types.some((type) => isOfType(value, type)))
    return `${at} must be of type ${types.join(" or ")}`
  const constants = "const" in schema ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : undefined
  if (constants && !canonicalOf(schema, constants).has(canonicalJson(stringify(value))))
    return `${at} must be ${constants.map((one) => stringify(one)).join(" or ")}`
  if (isObject(value)) return membersProblem(value, schema, at)
  if (!Array.isArray(value)) return undefined
  return firstProblem(value.entries(), (index, item) => schemaProblem(item, schema.items, `${at}[${index}]`))
}

function membersProblem(
  value: Readonly<Record<string, unknown>>,
  { properties, required, additionalProperties }: Readonly<Record<string, unknown>>,
  at: string,
): string | undefined {
  const known = isObject(properties) ? properties : {}
  const missing = (Array.isArray(required) ? required : []).find((name) => !Object.hasOwn(value, name))
  if (missing !== undefined) return `${at}.${missing} is missing`
  return firstProblem(Object.entries(value), (name, member) => {
    const path = `${at}.${name}`
    if (Object.hasOwn(known, name)) return schemaProblem(member, known[name], path)
    if (additionalProperties === false) return `${path} is not one of ${Object.keys(known).join(", ")}`
    return schemaProblem(member, additionalProperties, path)
  })
}

function firstProblem<Key>(
  entries: Iterable<[Key, unknown]>,
  problemOf: (key: Key, value: unknown) => string | undefined,
): string | undefined {
  for (const [key, value] of entries) {
    const problem = problemOf(key, value)
    if (problem !== undefined) return problem
  }
  return undefined
}

const known = new WeakMap<object, ReadonlySet<string>>()

/** Constants of a schema in canonical JSON, cached since a list may have thousands of entries. */
function canonicalOf(schema: object, constants: readonly unknown[]): ReadonlySet<string> {
  const found = known.get(schema) ?? new Set(constants.map((one) => canonicalJson(stringify(one))))
  known.set(schema, found)
  return found
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === "object") return isObject(value)
  if (type === "array") return Array.isArray(value)
  if (type === "null") return value === null
  if (type === "integer") return Number.isInteger(value)
  return !["string", "number", "boolean"].includes(type as string) || typeof value === type
}
