import { describedBy, nearestKey, nearestName, otherKey } from "../../options/nearest.ts"
import { newName } from "../../options/renamed.ts"
import type { Choice, Entry, OptionFields } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import { configFields } from "./fields.ts"

/** Part of a configuration that a dotted key names. */
export interface Branch {
  /** Path in a file, without the names of variants. */
  readonly path: readonly string[]
  /** Entry. A choice has a single variant if the key names one. */
  readonly entry: Entry
  /** Variants named by the key, by the dotted path of the choice. */
  readonly chosen: ReadonlyMap<string, string>
  /** Key that selects the variant, if the dotted key ends with it; `entry` is the choice then. */
  readonly selector?: Selector | undefined
}

/** Keys of a choice that select its variant: a name, or the path of a module. */
export type Selector = (typeof selectors)[number]

const selectors = ["name", "use"] as const

/** Whether a text looks like a dotted key of a configuration, not like a file. */
export function isKey(text: string): boolean {
  return /^[\w-]+(\.[\w-]+)*$/.test(text) && !/\.(ya?ml|json)$/.test(text)
}

/**
 * Part of the configuration that a dotted key names, such as "training.estimator", "training.estimator.hgpo" or
 * "training.rollout.maxCompletionTokens". "training.estimator.name" is the choice itself.
 *
 * @throws GigpoError `BAD_ARGUMENT` with the option that TRL or verl call so, the most similar key, or the known keys
 */
export function entryAt(key: string): Branch {
  const names = key.split(".")
  const path: string[] = []
  const chosen = new Map<string, string>()
  let fields: OptionFields = configFields
  let entry: Entry | undefined
  for (const [depth, name] of names.entries()) {
    if (entry && "variants" in entry && Object.hasOwn(entry.variants, name)) {
      chosen.set(path.join("."), name)
      entry = only(entry, name)
    } else {
      const selector = entry && "variants" in entry ? selectors.find((key) => key === name) : undefined
      if (selector !== undefined && depth === names.length - 1) return { path, entry: entry!, chosen, selector }
      if (!Object.hasOwn(fields, name)) throw unknown(names, depth + 1, fields, entry)
      entry = fields[name]!
      path.push(name)
    }
    fields = fieldsIn(entry)
  }
  return { path, entry: entry!, chosen }
}

/** Choice reduced to one variant. */
function only(choice: Choice, name: string): Choice {
  return { ...choice, default: name, variants: { [name]: choice.variants[name]! } }
}

function variantsOf(entry: Entry | undefined): object {
  return entry && "variants" in entry ? entry.variants : {}
}

/** Options below an entry; for a choice, those of all variants. Of equal names that of the default variant counts. */
function fieldsIn(entry: Entry): OptionFields {
  if ("fields" in entry) return entry.fields
  if ("variants" in entry)
    return Object.assign({}, ...Object.values(entry.variants), entry.variants[entry.default ?? ""], entry.common)
  return {}
}

/** Keys to list where nothing is similar: not the options of every variant. */
function listed(entry: Entry | undefined, fields: OptionFields): readonly string[] {
  if (!entry || !("variants" in entry)) return Object.keys(fields)
  return [...selectors, ...Object.keys({ ...entry.variants[entry.default ?? ""], ...entry.common })]
}

/** Error for a key whose first `depth` names end with an unknown key of `entry`, whose options are `fields`. */
function unknown(names: readonly string[], depth: number, fields: OptionFields, entry: Entry | undefined): GigpoError {
  const known = Object.keys({ ...fields, ...variantsOf(entry) })
  const above = names.slice(0, depth)
  const renamed = newName(above, known)
  const other = renamed ? undefined : otherKey(names, everyKey(configFields))
  const path = other ? names : above
  const meant = renamed ?? other ?? meantBy(path, known, fields)
  const hint =
    meant === undefined
      ? `known: ${listed(entry, fields).join(", ") || "none"}`
      : `did you mean ${meant.join(".")}?${inFile(meant)}`
  const reason = renamed ? `was renamed to ${renamed.join(".")}.` : `is not an option; ${hint}`
  return new GigpoError("BAD_ARGUMENT", `${path.join(".")} ${reason}`)
}

/** How a key that names variants is written in a file, where the variant is the value of `name`. */
function inFile(key: readonly string[]): string {
  const { path, chosen } = entryAt(key.join("."))
  if (chosen.size === 0) return ""
  const option = chosen.has(path.join(".")) ? [] : [path.join(".")]
  return ` In a file: ${[...[...chosen].map(([place, name]) => `${place}.name: ${name}`), ...option].join(" and ")}.`
}

/** Most similar key: the same name elsewhere, where fewest parts lead to it, a similar name or a description with its words here, or a similar name elsewhere. */
function meantBy(
  path: readonly string[],
  known: readonly string[],
  fields: OptionFields,
): readonly string[] | undefined {
  const all = everyKey(configFields)
  const near = nearestName(path.at(-1)!, known) ?? describedBy(path.at(-1)!, fields)
  const [same] = all.filter((key) => key.at(-1) === path.at(-1)).sort((a, b) => a.length - b.length)
  return same ?? (near === undefined ? nearestKey(path, all) : [...path.slice(0, -1), near])
}

/** Every key that `entryAt` accepts, with options of variants below the variant's name, except those of the default. */
function everyKey(fields: OptionFields, above: readonly string[] = []): (readonly string[])[] {
  return Object.entries(fields).flatMap(([name, entry]) => {
    const path = [...above, name]
    if ("fields" in entry) return [path, ...everyKey(entry.fields, path)]
    if (!("variants" in entry)) return [path]
    // Variants share option names: a hint should name that of the default variant.
    const variants = Object.keys(entry.variants)
    const names = [...new Set([entry.default, ...variants])].filter((name) => variants.includes(name as string))
    const below = names.flatMap((name) => {
      const place = [...path, name as string]
      return [place, ...everyKey(entry.variants[name as string]!, name === entry.default ? path : place)]
    })
    return [path, ...everyKey(entry.common, path), ...below]
  })
}
