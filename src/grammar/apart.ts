import { canonicalJson } from "../json/numbers.ts"
import type { Pieces } from "../util/pace.ts"
import { isSchema, type Schema, typesOf, valuesOf } from "./schema.ts"

// The schemas of a oneOf must exclude each other: by listed values, by types, or by a required property with different values in each.
// Values are collected in one map, so the work is linear in the length of the schema. Pairs are compared only if no single property
// distinguishes all schemas.

/** Maximum number of schemas that are compared in pairs. */
const mostPaired = 64

type Values = ReadonlySet<string>

/** Schema without listed values. */
interface Open {
  readonly types: Values | undefined
  /** Values of required properties that list their values. */
  readonly tags: ReadonlyMap<string, Values>
}

/** Whether a value can satisfy two of the schemas; "unknown" for too many to compare. */
export function* overlap(parts: readonly Schema[]): Pieces<boolean | "unknown"> {
  const values = yield* each(parts, valuesOf)
  const listed = parts.filter((_, at) => values[at])
  const canonical = yield* each(
    values.filter((own) => own !== undefined),
    canonicalValues,
  )
  if (yield* share(canonical)) return true
  const open = yield* each(
    parts.filter((_, at) => !values[at]),
    openOf,
  )
  if (open.length === 0) return false
  if (listed.length > 0) {
    const types = yield* each(listed, typeNames)
    if (types.includes(undefined)) return true
    const known = new Set(types.flatMap((names) => [...names!]))
    if (open.some((one) => one.types === undefined || meet(one.types, known))) return true
  }
  return yield* overlapOpen(open)
}

function* each<T, U>(parts: readonly T[], read: (part: T) => U): Pieces<U[]> {
  const found: U[] = []
  for (const part of parts) {
    found.push(read(part))
    yield
  }
  return found
}

function* overlapOpen(open: readonly Open[]): Pieces<boolean | "unknown"> {
  const byType = new Map<string | undefined, Open[]>()
  for (const one of open) {
    const names = one.types && [...one.types].sort().join()
    byType.set(names, byType.get(names) ?? [])
    byType.get(names)!.push(one)
  }
  const groups = [...byType.values()]
  const areTypesApart = !byType.has(undefined) && !(yield* share(groups.map(([first]) => first!.types!)))
  if (yield* every(areTypesApart ? groups : [open], shareNoTag)) return false
  if (open.length > mostPaired) return "unknown"
  return open.some((one, index) => open.slice(index + 1).some((other) => !areApart(one, other)))
}

function* every<T>(parts: readonly T[], holds: (part: T) => Pieces<boolean>): Pieces<boolean> {
  for (const part of parts) if (!(yield* holds(part))) return false
  return true
}

/** Whether all schemas require a property that has different values in each. */
function* shareNoTag(group: readonly Open[]): Pieces<boolean> {
  if (group.length === 1) return true
  for (const name of group[0]!.tags.keys()) {
    yield
    if (!group.every(({ tags }) => tags.has(name))) continue
    if (!(yield* share(group.map(({ tags }) => tags.get(name)!)))) return true
  }
  return false
}

function areApart(one: Open, other: Open): boolean {
  if (one.types && other.types && !meet(one.types, other.types)) return true
  return [...one.tags].some(([name, values]) => other.tags.has(name) && !meet(values, other.tags.get(name)!))
}

function openOf(schema: Schema): Open {
  const { properties, required } = schema
  const tags = new Map<string, Values>()
  if (isSchema(properties) && Array.isArray(required))
    for (const name of new Set<unknown>(required)) {
      const property = typeof name === "string" && Object.hasOwn(properties, name) ? properties[name] : undefined
      const values = isSchema(property) ? valuesOf(property) : undefined
      if (values) tags.set(name as string, canonicalValues(values))
    }
  return { types: typeNames(schema), tags }
}

function canonicalValues(values: readonly string[]): Values {
  return new Set(values.map(canonicalJson))
}

/** Types of a schema; integer counts as number. */
function typeNames(schema: Schema): Values | undefined {
  const types = typesOf(schema)
  return types && new Set(types.map((type) => (type === "integer" ? "number" : String(type))))
}

/** Whether any two of the sets have a common element. */
function* share(sets: readonly Values[]): Pieces<boolean> {
  const known = new Set<string>()
  for (const set of sets) {
    for (const value of set) if (known.has(value)) return true
    for (const value of set) known.add(value)
    yield
  }
  return false
}

function meet(one: Values, other: Values): boolean {
  const [small, large] = one.size <= other.size ? [one, other] : [other, one]
  for (const value of small) if (large.has(value)) return true
  return false
}
