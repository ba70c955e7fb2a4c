import { canonical } from "../canonical.ts"
import { GigpoError } from "../errors.ts"
import { formatNames, formatString } from "./formats.ts"
import { anyObject, anyValue, comma, constant, list, string } from "./json.ts"
import { choice, impossible, type Node, nothing, repeat, rule, sequence, text } from "./node.ts"
import { type Bounds, integer, integerBetween, number, numberBetween } from "./numbers.ts"
import { object } from "./object.ts"
import { patternString } from "./pattern.ts"

// JSON Schema (draft 2020-12) as a grammar. Every text of the grammar satisfies the schema; not the other way round: properties come
// in the order in which the schema names them, and where it does not speak of additional ones there are none. A keyword that would
// be silently ignored is refused.

type Schema = Readonly<Record<string, unknown>>

const annotations = new Set([
  ...["$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "title", "description", "default", "examples"],
  ...["deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "strict"],
])

const ofType: Readonly<Record<string, readonly string[]>> = {
  object: ["properties", "required", "additionalProperties", "propertyNames"],
  array: ["items", "prefixItems", "minItems", "maxItems"],
  string: ["minLength", "maxLength", "pattern", "format"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  integer: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  boolean: [],
  null: [],
}
const composing = ["enum", "const", "anyOf", "oneOf", "allOf", "$ref"] as const
const deepest = 64
const mostDefinitions = 500
/** Characters of a schema, as JSON: what reads it takes milliseconds then, whatever it says. */
const longest = 2 ** 17

/**
 * The texts that this schema allows.
 *
 * @param name what messages call the schema
 * @throws GigpoError `BAD_ARGUMENT` for what is no schema, or asks for what cannot be promised.
 */
export function jsonSchema(schema: unknown, name = "The schema"): Node {
  const length = JSON.stringify(schema)?.length ?? 0
  if (length > longest)
    throw new GigpoError("BAD_ARGUMENT", `${name} has ${length} characters; give one of at most ${longest}.`)
  return new SchemaReader(schema, name).read(schema, "#", 0)
}

class SchemaReader {
  readonly #root: unknown
  readonly #name: string
  /** By pointer, so that a definition that names itself is one rule. */
  readonly #referred = new Map<string, Node>()

  constructor(root: unknown, name: string) {
    this.#root = root
    this.#name = name
  }

  read(schema: unknown, at: string, depth: number): Node {
    if (depth > deepest) throw this.#refuse(at, `is nested more than ${deepest} deep`)
    if (schema === true) return anyValue
    if (schema === false) return impossible
    if (!isSchema(schema)) throw this.#refuse(at, "must be an object or a boolean")
    const types = this.#types(schema, at)
    this.#checkKeywords(schema, types, at)
    const inner = (value: unknown, key: string) => this.read(value, `${at}/${key}`, depth + 1)
    if ("$ref" in schema) return this.#refer(schema.$ref, at, depth)
    if ("const" in schema) return constant(schema.const)
    if ("enum" in schema) return this.#constants(schema.enum, types, at)
    for (const keyword of ["anyOf", "oneOf", "allOf"] as const) {
      if (!(keyword in schema)) continue
      const parts = schema[keyword]
      if (!Array.isArray(parts) || parts.length === 0)
        throw this.#refuse(`${at}/${keyword}`, "must be a list of schemas")
      if (keyword === "allOf" && parts.length > 1)
        throw this.#refuse(at, "has allOf with several schemas: write them as one")
      if (keyword === "oneOf") this.#checkApart(parts, at)
      return choice(parts.map((part, index) => inner(part, `${keyword}/${index}`)))
    }
    if (types === undefined) return anyValue
    return choice(types.map((type) => this.#ofType(type, schema, at, inner)))
  }

  #types(schema: Schema, at: string): readonly string[] | undefined {
    const given = schema.type
    if (given === undefined) {
      // Not strictly JSON Schema, where keywords speak only of values of their type; it is what is meant.
      const implied = Object.keys(ofType).find((type) => ofType[type]!.some((keyword) => keyword in schema))
      return implied === undefined ? undefined : [implied]
    }
    const types = Array.isArray(given) ? given : [given]
    const wrong = types.find((type) => typeof type !== "string" || !Object.hasOwn(ofType, type))
    if (types.length === 0 || wrong !== undefined)
      throw this.#refuse(`${at}/type`, `must be of ${Object.keys(ofType).join(", ")}`)
    return types
  }

  #checkKeywords(schema: Schema, types: readonly string[] | undefined, at: string): void {
    const composed = composing.filter((keyword) => keyword in schema)
    if (composed.length > 1) throw this.#refuse(at, `has ${composed.join(" and ")} side by side: write them as one`)
    const known = new Set<string>(["type", ...composing])
    if (composed.length === 0) for (const type of types ?? []) for (const keyword of ofType[type]!) known.add(keyword)
    const strange = Object.keys(schema).find((keyword) => !known.has(keyword) && !annotations.has(keyword))
    if (strange === undefined) return
    const beside = composed.length > 0 ? ` beside ${composed[0]}` : types ? ` of type ${types.join(" or ")}` : ""
    throw this.#refuse(at, `has the keyword ${JSON.stringify(strange.slice(0, 50))}, which cannot be promised${beside}`)
  }

  #refer(pointer: unknown, at: string, depth: number): Node {
    if (typeof pointer !== "string" || !/^#(\/|$)/.test(pointer))
      throw this.#refuse(`${at}/$ref`, 'must point into the schema itself, like "#/$defs/name"')
    const known = this.#referred.get(pointer)
    if (known) return known
    const target = this.#target(pointer)
    if (target === undefined) throw this.#refuse(`${at}/$ref`, `points to ${pointer.slice(0, 100)}, where nothing is`)
    if (this.#referred.size === mostDefinitions) throw this.#refuse(at, `refers to more than ${mostDefinitions} places`)
    let read: Node | undefined
    const node = rule(() => read!)
    this.#referred.set(pointer, node)
    read = this.read(target, pointer, depth + 1) // read at once: what is wrong in it is told now
    return node
  }

  #constants(values: unknown, types: readonly string[] | undefined, at: string): Node {
    if (!Array.isArray(values) || values.length === 0) throw this.#refuse(`${at}/enum`, "must be a list of values")
    const typed = types ? values.filter((value) => types.some((type) => isOfType(value, type))) : values
    return choice(typed.map(constant))
  }

  #ofType(type: string, schema: Schema, at: string, inner: (value: unknown, key: string) => Node): Node {
    switch (type) {
      case "object":
        return this.#object(schema, at, inner)
      case "array":
        return this.#array(schema, at, inner)
      case "string":
        return this.#string(schema, at)
      case "integer":
      case "number": {
        const bounds = this.#bounds(schema, at)
        if (!bounds) return type === "integer" ? integer : number
        return type === "integer" ? integerBetween(bounds) : numberBetween(bounds)
      }
      case "boolean":
        return choice([text("true"), text("false")])
      default:
        return text("null")
    }
  }

  #object(schema: Schema, at: string, inner: (value: unknown, key: string) => Node): Node {
    const { properties = {}, required = [], additionalProperties: additional, propertyNames } = schema
    if (!isSchema(properties)) throw this.#refuse(`${at}/properties`, "must be an object")
    if (!Array.isArray(required) || !required.every((name) => typeof name === "string"))
      throw this.#refuse(`${at}/required`, "must be a list of names")
    const names = Object.keys(properties)
    const others = additional === undefined ? names.length === 0 && required.length === 0 : additional !== false
    const needed = new Set<string>(required)
    const missing = required.find((name) => !Object.hasOwn(properties, name))
    if (missing !== undefined)
      throw this.#refuse(at, `requires ${JSON.stringify(missing)}, of which properties says nothing`)
    if (
      names.length === 0 &&
      others &&
      propertyNames === undefined &&
      (additional === undefined || additional === true)
    )
      return anyObject
    const read = names.map((name) => ({
      name,
      value: inner(properties[name], `properties/${name}`),
      required: needed.has(name),
    }))
    if (!others) return object(read)
    if (propertyNames !== undefined && names.length > 0) throw this.#refuse(at, "has propertyNames beside properties")
    const key = propertyNames === undefined ? undefined : this.#key(propertyNames, `${at}/propertyNames`)
    return object(read, { key, value: additional === undefined ? anyValue : inner(additional, "additionalProperties") })
  }

  #key(schema: unknown, at: string): Node | undefined {
    if (!isSchema(schema)) throw this.#refuse(at, "must be a schema of strings")
    return this.read({ type: "string", ...schema }, at, 1)
  }

  #array(schema: Schema, at: string, inner: (value: unknown, key: string) => Node): Node {
    const { items, prefixItems = [] } = schema
    const least = this.#count(schema, "minItems", at) ?? 0
    const most = this.#count(schema, "maxItems", at) ?? Number.POSITIVE_INFINITY
    if (!Array.isArray(prefixItems)) throw this.#refuse(`${at}/prefixItems`, "must be a list of schemas")
    if (least > most) return impossible
    const item = items === undefined ? anyValue : rule(() => read)
    const read = items === undefined ? anyValue : inner(items, "items")
    if (prefixItems.length === 0) return items === false ? list(item, 0, 0) : list(item, least, most)
    // A tuple: with `items: false` as long as its parts, else with more behind them.
    const parts = prefixItems.map((part, index) => inner(part, `prefixItems/${index}`))
    if (most < parts.length || (least < parts.length && "minItems" in schema))
      throw this.#refuse(at, "has prefixItems of which some may be left out")
    const [from, to] = [Math.max(least - parts.length, 0), most - parts.length]
    const more = items === undefined || items === false ? nothing : repeat(sequence(comma, item), from, to)
    if (more === nothing && from > 0) return impossible
    return sequence(text("["), ...parts.flatMap((part, index) => (index > 0 ? [comma, part] : [part])), more, text("]"))
  }

  #string(schema: Schema, at: string): Node {
    const least = this.#count(schema, "minLength", at)
    const most = this.#count(schema, "maxLength", at)
    const { pattern, format } = schema
    const given = [pattern, format, least ?? most].filter((value) => value !== undefined)
    if (given.length > 1)
      throw this.#refuse(at, "has more than one of pattern, format and bounds of its length: write them as a pattern")
    if (pattern !== undefined) {
      if (typeof pattern !== "string") throw this.#refuse(`${at}/pattern`, "must be a string")
      return patternString(pattern)
    }
    if (format === undefined) return string(least, most)
    const node = typeof format === "string" ? formatString(format) : undefined
    if (!node) throw this.#refuse(`${at}/format`, `must be one of ${formatNames.join(", ")}`)
    return node
  }

  #count(schema: Schema, keyword: string, at: string): number | undefined {
    const value = schema[keyword]
    if (value === undefined) return undefined
    if (!Number.isSafeInteger(value) || (value as number) < 0)
      throw this.#refuse(`${at}/${keyword}`, "must be a whole number")
    return value as number
  }

  #bounds(schema: Schema, at: string): Bounds | undefined {
    const bound = (keyword: string): bigint | undefined => {
      const value = schema[keyword]
      if (value === undefined) return undefined
      if (!Number.isInteger(value))
        throw this.#refuse(`${at}/${keyword}`, "must be a whole number: others cannot be promised")
      return BigInt(value as number)
    }
    const [low, aboveLow] = stricter(bound("minimum"), bound("exclusiveMinimum"), (a, b) => a > b)
    const [high, belowHigh] = stricter(bound("maximum"), bound("exclusiveMaximum"), (a, b) => a < b)
    return low === undefined && high === undefined ? undefined : { low, high, aboveLow, belowHigh }
  }

  /** What satisfies one of these must satisfy no other: told apart by type, or by a property that has one value in each. */
  #checkApart(parts: readonly unknown[], at: string): void {
    const apart = (one: unknown, other: unknown) =>
      isSchema(one) && isSchema(other) && areApart(this.#follow(one), this.#follow(other))
    const alike = parts.some((one, index) => parts.slice(index + 1).some((other) => !apart(one, other)))
    if (alike)
      throw this.#refuse(
        at,
        "has oneOf whose schemas may hold at once: use anyOf, or give each a property with a const of its own",
      )
  }

  #follow(schema: Schema): Schema {
    const found = typeof schema.$ref === "string" ? this.#target(schema.$ref) : undefined
    return isSchema(found) ? found : schema
  }

  /** What a pointer points to; undefined where nothing is. */
  #target(pointer: string): unknown {
    return pointer
      .split("/")
      .slice(1)
      .reduce((value: unknown, part) => {
        const key = decode(part)
        const exists = (isSchema(value) || Array.isArray(value)) && Object.hasOwn(value, key)
        return exists ? (value as Schema)[key] : undefined
      }, this.#root)
  }

  #refuse(at: string, what: string): GigpoError {
    return new GigpoError("BAD_ARGUMENT", `${this.#name} at ${at.slice(0, 200)} ${what}.`)
  }
}

function areApart(one: Schema, other: Schema): boolean {
  const [a, b] = [values(one), values(other)]
  if (a && b) {
    const known = new Set(b.map(canonical))
    return !a.some((value) => known.has(canonical(value)))
  }
  const types = (schema: Schema) => (schema.type === undefined ? undefined : [schema.type].flat())
  const [s, t] = [types(one), types(other)]
  if (
    s &&
    t &&
    !s.some((type) => t.some((same) => same === type || (isNumeric(type) === isNumeric(same) && isNumeric(type))))
  )
    return true
  if (!isSchema(one.properties) || !isSchema(other.properties)) return false
  const required = (schema: Schema, name: string) => Array.isArray(schema.required) && schema.required.includes(name)
  const [p, q] = [one.properties, other.properties]
  return Object.keys(p).some((name) => {
    const both = Object.hasOwn(q, name) && required(one, name) && required(other, name)
    const [x, y] = both ? [p[name], q[name]] : []
    return isSchema(x) && isSchema(y) && values(x) !== undefined && values(y) !== undefined && areApart(x, y)
  })
}

function isNumeric(type: unknown): boolean {
  return type === "integer" || type === "number"
}

/** All that it allows, where it lists them. */
function values(schema: Schema): readonly unknown[] | undefined {
  if ("const" in schema) return [schema.const]
  return Array.isArray(schema.enum) ? schema.enum : undefined
}

function stricter(
  included: bigint | undefined,
  excluded: bigint | undefined,
  beyond: (one: bigint, other: bigint) => boolean,
): [bigint | undefined, boolean] {
  if (excluded === undefined) return [included, false]
  if (included === undefined) return [excluded, true]
  return beyond(included, excluded) ? [included, false] : [excluded, true]
}

function isOfType(value: unknown, type: string): boolean {
  if (type === "null") return value === null
  if (type === "array") return Array.isArray(value)
  if (type === "object") return isSchema(value)
  if (type === "integer") return Number.isInteger(value)
  return typeof value === type
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

/** One step of a JSON pointer (RFC 6901) in a URI. */
function decode(part: string): string {
  let plain = part
  try {
    plain = decodeURIComponent(part)
  } catch {} // not encoded at all
  return plain.replaceAll("~1", "/").replaceAll("~0", "~")
}
