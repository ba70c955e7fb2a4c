import { nearestKey, nearestName } from "../../options/nearest.ts"
import { newName } from "../../options/renamed.ts"
import type { Choice, Entry, Fields } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import { configFields } from "./fields.ts"

/** Part of a configuration that a dotted key names. */
export interface Branch {
  /** Where it is written in a file: without the names of choices. */
  readonly path: readonly string[]
  /** Its entry; a choice has one variant only where the key names it. */
  readonly entry: Entry
  /** Names of choices on the way, by the dotted path of the choice. */
  readonly chosen: ReadonlyMap<string, string>
}

/** Whether a text is meant as a dotted key of a configuration, not as a file. */
export function isKey(text: string): boolean {
  return /^[\w-]+(\.[\w-]+)*$/.test(text) && !/\.(ya?ml|json)$/.test(text)
}

/**
 * The part of a dotted key: "training.estimator", "training.estimator.hgpo", "training.rollout.maxCompletionTokens".
 *
 * @throws GigpoError `BAD_ARGUMENT` with the key that was probably meant, or the keys that there are
 */
export function entryAt(key: string): Branch {
  const names = key.split(".")
  const path: string[] = []
  const chosen = new Map<string, string>()
  let fields: Fields = configFields
  let entry: Entry | undefined
  for (const [depth, name] of names.entries()) {
    if (entry && "variants" in entry && Object.hasOwn(entry.variants, name)) {
      chosen.set(path.join("."), name)
      entry = only(entry, name)
    } else {
      if (!Object.hasOwn(fields, name))
        throw unknown(names.slice(0, depth + 1), Object.keys({ ...fields, ...variantsOf(entry) }))
      entry = fields[name]!
      path.push(name)
    }
    fields = fieldsIn(entry)
  }
  return { path, entry: entry!, chosen }
}

/** The choice of one variant. */
function only(choice: Choice, name: string): Choice {
  return { ...choice, default: name, variants: { [name]: choice.variants[name]! } }
}

function variantsOf(entry: Entry | undefined): object {
  return entry && "variants" in entry ? entry.variants : {}
}

/** Options below an entry; of a choice those of all that may be chosen. */
function fieldsIn(entry: Entry): Fields {
  if ("fields" in entry) return entry.fields
  if ("variants" in entry) return Object.assign({}, ...Object.values(entry.variants), entry.common)
  return {}
}

function unknown(path: readonly string[], known: readonly string[]): GigpoError {
  const renamed = newName(path, known)
  const meant = renamed ?? meantBy(path, known)
  const hint = meant === undefined ? `known: ${known.join(", ") || "none"}` : `did you mean ${meant.join(".")}?`
  const reason = renamed ? `was renamed to ${renamed.join(".")}.` : `is not a key of a configuration; ${hint}`
  return new GigpoError("BAD_ARGUMENT", `${path.join(".")} ${reason}`)
}

/** The same name elsewhere, a similar one here, or a similar one elsewhere. */
function meantBy(path: readonly string[], known: readonly string[]): readonly string[] | undefined {
  const all = everyKey(configFields)
  const near = nearestName(path.at(-1)!, known)
  const same = all.find((key) => key.at(-1) === path.at(-1))
  return same ?? (near === undefined ? nearestKey(path, all) : [...path.slice(0, -1), near])
}

/** Every key that `entryAt` takes, variants' options under their names. */
function everyKey(fields: Fields, above: readonly string[] = []): (readonly string[])[] {
  return Object.entries(fields).flatMap(([name, entry]) => {
    const path = [...above, name]
    if ("fields" in entry) return [path, ...everyKey(entry.fields, path)]
    if (!("variants" in entry)) return [path]
    // Variants share names of options: a hint should name the default one's.
    const variants = Object.keys(entry.variants)
    const names = [...new Set([entry.default, ...variants])].filter((name) => variants.includes(name as string))
    const below = names.flatMap((name) => {
      const place = [...path, name as string]
      return [place, ...everyKey(entry.variants[name as string]!, place)]
    })
    return [path, ...below]
  })
}
