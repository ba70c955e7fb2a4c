import { isDeepStrictEqual } from "node:util"
import type { Random } from "../../src/util/random.ts"

// Random JSON schemas, and whether a value satisfies one: by JSON Schema's own words, and by nothing of the grammar's code.

type Schema = Record<string, unknown>

const strange = ["", "a", 'quote " \\ /', "\u0000\u001f\u007f", "é😀\u2028", "__proto__", "constructor", "a".repeat(40)]
const patterns = ["^a+$", "^[^a-z]{1,3}$", "^(x|yy|)z?$", "^\\d{2,4}-[\\w.]*$", "b", '^["\\\\]{1,2}$', "^é+$"]
const formats: Readonly<Record<string, RegExp>> = {
  date: /^\d{4}-\d\d-\d\d$/,
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  ipv4: /^(\d{1,3}\.){3}\d{1,3}$/,
  "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
}

/** A schema with a definition that names itself, within which others are drawn. */
export function randomSchema(random: Random): Schema {
  const below = (n: number) => random.below(n)
  const pick = <T>(of: readonly T[]): T => of[below(of.length)]!
  const may = () => below(2) === 0
  const names = () => strange.filter(() => below(3) === 0)

  const draw = (depth: number): unknown => {
    const leaf = depth > 2
    switch (below(leaf ? 7 : 12)) {
      case 0:
        return { type: pick(["boolean", "null"]) }
      case 1:
        return { type: pick(["integer", "number"]), ...bounds() }
      case 2:
        return may()
          ? { const: pick([null, 0, -1.5, 1e21, "x", ...strange, [1, {}], { a: [] }]) }
          : { enum: [1, "1", pick(strange), null] }
      case 3:
        return {
          type: "string",
          ...pick<() => object>([() => ({}), () => ({ minLength: below(3), maxLength: 2 + below(4) })])(),
        }
      case 4:
        return { type: "string", pattern: pick(patterns) }
      case 5:
        return { type: "string", format: pick(Object.keys(formats)) }
      case 6:
        return leaf ? { type: ["string", "null"] } : { $ref: "#/$defs/self" }
      case 7:
      case 8: {
        const keys = names()
        const required = keys.filter(may)
        const others = pick<() => object>([
          () => ({}),
          () => ({ additionalProperties: false }),
          () => ({ additionalProperties: draw(depth + 1) }),
        ])()
        return {
          type: "object",
          properties: Object.fromEntries(keys.map((key) => [key, draw(depth + 1)])),
          required,
          ...others,
        }
      }
      case 9: {
        const least = below(3)
        return { type: "array", items: draw(depth + 1), ...(may() && { minItems: least, maxItems: least + below(3) }) }
      }
      case 10:
        return { type: "array", prefixItems: [draw(depth + 1), draw(depth + 1)], items: false }
      default:
        return { anyOf: [draw(depth + 1), draw(depth + 1)] }
    }
  }
  const bounds = () => {
    const low = below(2000) - 1000
    const high = low + below(3000)
    return pick<object>([
      {},
      { minimum: low },
      { maximum: high },
      { minimum: low, maximum: high },
      { exclusiveMinimum: low, exclusiveMaximum: high + 2 },
    ])
  }
  const self = { type: "object", properties: { next: { anyOf: [{ type: "null" }, { $ref: "#/$defs/self" }] } }, required: ["next"], additionalProperties: false } // biome-ignore format: one line
  return { $defs: { self }, anyOf: [draw(0)] }
}

export function satisfies(value: unknown, schema: unknown, root: Schema): boolean {
  if (typeof schema === "boolean") return schema
  const {
    $ref,
    const: only,
    enum: listed,
    anyOf,
    type,
    ...rest
  } = schema as Schema & { anyOf?: unknown[]; enum?: unknown[] }
  if ($ref === "#/$defs/self") return satisfies(value, (root.$defs as Schema).self, root)
  if ("const" in (schema as Schema)) return isDeepStrictEqual(value, only)
  if (listed) return listed.some((one) => isDeepStrictEqual(value, one))
  if (anyOf) return anyOf.some((one) => satisfies(value, one, root))
  const is: Readonly<Record<string, () => boolean>> = {
    null: () => value === null,
    boolean: () => typeof value === "boolean",
    integer: () => Number.isInteger(value) && within(value as number, rest),
    number: () => typeof value === "number" && within(value, rest),
    string: () => typeof value === "string" && isString(value, rest),
    array: () => Array.isArray(value) && isArray(value, rest, root),
    object: () => typeof value === "object" && value !== null && !Array.isArray(value) && isObject(value, rest, root),
  }
  return [type].flat().some((one) => is[one as string]!())
}

function within(value: number, { minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Schema): boolean {
  const beyond = (bound: unknown, wrong: (bound: number) => boolean) => bound !== undefined && wrong(bound as number)
  if (!Number.isFinite(value)) return false
  if (beyond(minimum, (low) => value < low) || beyond(maximum, (high) => value > high)) return false
  return !beyond(exclusiveMinimum, (low) => value <= low) && !beyond(exclusiveMaximum, (high) => value >= high)
}

function isString(
  value: string,
  { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern, format }: Schema,
): boolean {
  const length = [...value].length
  if (length < (minLength as number) || length > (maxLength as number)) return false
  if (pattern !== undefined && !new RegExp(pattern as string, "u").test(value)) return false
  return format === undefined || formats[format as string]!.test(value)
}

function isArray(
  value: unknown[],
  { items = true, prefixItems = [], minItems = 0, maxItems = Number.POSITIVE_INFINITY }: Schema,
  root: Schema,
): boolean {
  if (value.length < (minItems as number) || value.length > (maxItems as number)) return false
  return value.every((one, at) => satisfies(one, (prefixItems as unknown[])[at] ?? items, root))
}

function isObject(
  value: object,
  { properties = {}, required = [], additionalProperties = true }: Schema,
  root: Schema,
): boolean {
  if ((required as string[]).some((name) => !Object.hasOwn(value, name))) return false
  return Object.entries(value).every(([name, one]) => {
    const own = Object.hasOwn(properties as object, name) ? (properties as Schema)[name] : additionalProperties
    return satisfies(one, own, root)
  })
}
