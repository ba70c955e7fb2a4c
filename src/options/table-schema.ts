import type { Choice, Entry, OptionField, OptionFields } from "./table.ts"

/** JSON Schema of draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** Pattern of the paths that `isModulePath` accepts: ./mine, ../mine/index.mjs, mine.ts. */
export const modulePattern = "^\\.{0,2}/|\\.[cm]?[jt]s$"

/**
 * Returns the JSON Schema of the values that a file may give for a table. The schema accepts everything that the table accepts. Checks
 * that JSON Schema cannot express, such as a check of two options together, are left to the table.
 *
 * @returns schema of the object, with `$defs` for options that occur in more than one place
 */
export function tableSchema(fields: OptionFields): JsonSchema {
  const uses = new Map<Entry, number>()
  count(fields, uses)
  const page: Page = { uses, names: new Map(), definitions: {} }
  const root = objectSchema(page, fields)
  return { ...root, $defs: page.definitions }
}

interface Page {
  readonly uses: ReadonlyMap<Entry, number>
  /** Names of the definitions in `$defs`, by entry. */
  readonly names: Map<Entry, string>
  readonly definitions: Record<string, JsonSchema>
}

function count(fields: OptionFields, uses: Map<Entry, number>): void {
  for (const entry of Object.values(fields)) {
    uses.set(entry, (uses.get(entry) ?? 0) + 1)
    if (uses.get(entry)! > 1) continue
    if ("fields" in entry) count(entry.fields, uses)
    else if ("variants" in entry)
      for (const table of Object.values(entry.variants)) count({ ...table, ...entry.common }, uses)
    else if (entry.objectForm) count(entry.objectForm, uses)
  }
}

function objectSchema(page: Page, fields: OptionFields): JsonSchema {
  return { type: "object", properties: properties(page, fields), ...requiredOf(fields), additionalProperties: false }
}

function properties(page: Page, fields: OptionFields): JsonSchema {
  const shown = Object.entries(fields).filter(([, entry]) => !("codeOnly" in entry))
  return Object.fromEntries(shown.map(([key, entry]) => [key, reference(page, key, entry)]))
}

function requiredOf(fields: OptionFields, ...more: readonly string[]): JsonSchema {
  const needed = Object.entries(fields).filter(([, entry]) => isRequired(entry))
  const required = [...more, ...needed.map(([key]) => key)]
  return required.length > 0 ? { required } : {}
}

function isRequired(entry: Entry): boolean {
  if ("defaultText" in entry && !("validate" in entry)) return false
  if ("variants" in entry) return entry.default === undefined
  return "fields" in entry ? Object.values(entry.fields).some(isRequired) : "required" in entry
}

/** Schema of an option, or a reference to its definition if the option occurs in more than one place. */
function reference(page: Page, key: string, entry: Entry): JsonSchema {
  if ((page.uses.get(entry) ?? 0) < 2) return entrySchema(page, entry)
  const known = page.names.get(entry)
  if (known !== undefined) return { $ref: `#/$defs/${known}` }
  let name = key
  for (let number = 2; Object.hasOwn(page.definitions, name); number++) name = `${key}-${number}`
  page.names.set(entry, name)
  page.definitions[name] = {} // reserves the name while the entry is described
  page.definitions[name] = entrySchema(page, entry)
  return { $ref: `#/$defs/${name}` }
}

function entrySchema(page: Page, entry: Entry): JsonSchema {
  const { defaultText, default: fallback } = entry as Partial<OptionField<unknown>>
  const description = defaultText === undefined ? entry.help : `${entry.help} Default: ${defaultText}.`.trimStart()
  if ("variants" in entry) return { description, ...choiceSchema(page, entry) }
  if ("fields" in entry) return { description, ...objectSchema(page, entry.fields) }
  const standard = isJson(fallback) ? { default: fallback } : {}
  const value = { ...entry.schema }
  return {
    description,
    ...standard,
    ...(entry.objectForm ? { anyOf: [value, objectSchema(page, entry.objectForm)] } : value),
  }
}

/** Forms of a choice in a file: a name or a module's path alone, an object with a name and its options, or an object with a module. */
function choiceSchema(page: Page, choice: Choice): JsonSchema {
  const { variants, common, default: fallback, asGiven } = choice
  const names = Object.keys(variants)
  const named = names.map((name) => {
    const fields = { ...variants[name], ...common }
    const needed = requiredOf(fields, ...(name === fallback ? [] : ["name"]))
    const own = { name: { const: name }, ...properties(page, fields) }
    return { title: name, properties: own, ...needed, ...(asGiven && { additionalProperties: false }) }
  })
  // Options of other variants are allowed, so the keys of all variants are listed.
  const keys = ["name", ...Object.keys(common), ...Object.values(variants).flatMap((fields) => Object.keys(fields))]
  const module = {
    title: "a module of your own",
    type: "object",
    properties: {
      use: { type: "string", description: "Path of the module, relative to this file." },
      name: { type: "string", pattern: modulePattern },
      ...properties(page, common),
    },
    anyOf: [{ required: ["use"] }, { required: ["name"] }],
  }
  const propertyNames = asGiven ? {} : { propertyNames: { enum: [...new Set(keys)] } }
  const builtIn = names.length > 0 ? [{ enum: names }, { type: "object", ...propertyNames, anyOf: named }] : []
  return {
    anyOf: [...builtIn, { type: "string", pattern: modulePattern }, module],
    ...(fallback !== undefined && { default: fallback }),
  }
}

function isJson(value: unknown): boolean {
  return value !== undefined && typeof value !== "function" && !(typeof value === "number" && !Number.isFinite(value))
}
