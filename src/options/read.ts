import { GigpoError, type GigpoErrorCode } from "../util/errors.ts"
import { display, ended, notThis } from "./display.ts"
import { listKeys } from "./keys.ts"
import { isModulePath } from "./module-path.ts"
import { describedBy, nearestKey, nearestName, otherKey } from "./nearest.ts"
import { newName, newValue } from "./renamed.ts"
import type { Schedule, TrainingProgress } from "./schedule.ts"
import type { Choice, Entry, OptionField, OptionFields, ResolvedOf } from "./table.ts"

/** Mistake in options: path of the key, and a sentence that begins with the key. */
export interface Complaint {
  readonly path: readonly string[]
  readonly text: string
}

/**
 * Checks options and fills in their defaults. All unknown keys and wrong values are reported in one error.
 *
 * @param name - name of the function or object that takes the options, for messages.
 * @throws GigpoError `code`, by default `BAD_ARGUMENT`.
 */
export function readOptions<F extends OptionFields>(
  name: string,
  given: unknown,
  table: F,
  code: GigpoErrorCode = "BAD_ARGUMENT",
): ResolvedOf<F> {
  if (given !== undefined && !isObject(given)) throw new GigpoError(code, `${name}: options must be an object.`)
  const { value, complaints } = readTable(given ?? {}, table, "code", [], name)
  if (complaints.length > 0) throw refusal(code, name, complaints, () => name)
  return value
}

/** Error for one or more complaints. `where` names the place of each. */
export function refusal(
  code: GigpoErrorCode,
  name: string,
  complaints: readonly Complaint[],
  where: (path: readonly string[]) => string,
): GigpoError {
  const lines = complaints.map(({ path, text }) => `${where(path)}: ${text}`)
  return new GigpoError(
    code,
    lines.length === 1 ? lines[0]! : `${name} has ${lines.length} mistakes.\n${lines.join("\n")}`,
  )
}

/** Maximum number of complaints with a suggested key. A file that is not a configuration may have thousands of unknown keys. */
const mostHints = 50

/**
 * Reads options and returns complaints instead of throwing. In a file, the path of a module takes the place of a custom value.
 *
 * @param above - path of `given`, where it is part of a larger object.
 * @param owner - function whose options are read. Default: none
 */
export function readTable<F extends OptionFields>(
  given: unknown,
  table: F,
  source: "code" | "file",
  above: readonly string[] = [],
  owner?: string,
): { readonly value: ResolvedOf<F>; readonly complaints: readonly Complaint[] } {
  const complaints: Complaint[] = []
  const complain = (path: readonly string[], text: string) => {
    complaints.push({ path, text: `${path.join(".") || "the file"}${text}` })
  }
  const reader: Reader = {
    source,
    owner,
    complain,
    keys: () => (complaints.length < mostHints ? listKeys(table, given, above) : []),
  }
  // Only the options of a module are read with a path above them.
  const none = above.length === 0 ? undefined : nothingBeside(above)
  return { value: readFields(reader, given, table, above, none) as ResolvedOf<F>, complaints }
}

interface Reader {
  readonly source: "code" | "file"
  readonly owner: string | undefined
  /** Adds a complaint. `text` follows the key. */
  readonly complain: (path: readonly string[], text: string) => void
  /** Returns the candidates for a suggestion. */
  readonly keys: () => readonly (readonly string[])[]
}

type Values = Record<string, unknown>

/** Reads a group. `none` ends the message about an unknown key where the group has no options. */
function readFields(
  reader: Reader,
  given: unknown,
  fields: OptionFields,
  path: readonly string[],
  none = "there are none",
): Values {
  if (!isObject(given)) {
    reader.complain(path, ` must be a group of keys, not ${display(given)}.`)
    return {}
  }
  const found = readKnown(reader, given, fields, path)
  for (const key of unknownKeys(given, fields)) refuseUnknown(reader, [...path, key], fields, { none })
  return found
}

function readKnown(reader: Reader, given: Values, fields: OptionFields, path: readonly string[]): Values {
  const read = Object.entries(fields).map(([key, entry]) => {
    const value = Object.hasOwn(given, key) ? given[key] : undefined
    return [key, readEntry(reader, value, entry, [...path, key])] as const
  })
  return Object.fromEntries(read.filter(([, value]) => value !== undefined))
}

function unknownKeys(given: Values, fields: OptionFields): string[] {
  return Object.keys(given).filter((key) => !Object.hasOwn(fields, key))
}

function readEntry(reader: Reader, value: unknown, entry: Entry, path: readonly string[]): unknown {
  if ("variants" in entry) return readChoice(reader, value, entry, path)
  if ("validate" in entry) return readField(reader, value, entry, path)
  if (value === undefined && "defaultText" in entry) return undefined
  return readFields(reader, value === undefined ? {} : value, entry.fields, path)
}

function readField(reader: Reader, value: unknown, field: OptionField<unknown>, path: readonly string[]): unknown {
  if (value === undefined) {
    if ("required" in field) reader.complain(path, ` is missing. ${field.help}`.trimEnd())
    return field.default
  }
  if (field.objectForm && isObject(value)) return readFields(reader, value, field.objectForm, path)
  if ("changes" in field && typeof value === "function") return checkedSchedule(value as ScheduleFunction, field, path)
  const wrong = field.validate(value)
  if (wrong === undefined) return value
  const renamed = newValue(path, value, (one) => field.validate(one) === undefined)
  const hint = renamed === undefined ? "" : ` ${display(value)} was renamed to ${display(renamed)}.`
  reader.complain(path, ` ${wrong}, not ${display(value)}.${hint}`)
  return value
}

type ScheduleFunction = Extract<Schedule, (progress: TrainingProgress) => number>

/** Schedule whose results are checked as they are returned. */
function checkedSchedule(schedule: ScheduleFunction, field: OptionField<unknown>, path: readonly string[]): Schedule {
  return (progress) => {
    const value: unknown = schedule(progress)
    const wrong = field.validate(value)
    if (wrong === undefined) return value as number
    const when = `in iteration ${progress.iteration + 1} of ${progress.iterations}`
    throw new GigpoError("BAD_ARGUMENT", `${path.join(".")} ${wrong}; its schedule returned ${display(value)} ${when}.`)
  }
}

function readChoice(reader: Reader, value: unknown, choice: Choice, path: readonly string[]): unknown {
  const { own, common, help, default: fallback } = choice
  if (value === undefined && "defaultText" in choice) return undefined
  if (value === undefined && fallback === undefined) return reader.complain(path, ` is missing. ${help}`)
  const given = value === undefined ? {} : reader.source === "file" ? spelledOut(value) : value
  if (reader.source === "code") {
    const wrong = own.validate(given)
    if (wrong === undefined) return { use: given, ...readFields(reader, {}, common, path) }
    if (isObject(given) && own.meant?.(given)) return reader.complain(path, ended(` ${wrong}`))
  }
  if (!isObject(given))
    return reader.complain(path, ` must be a group of keys, not ${display(given)}.${spelling(given, choice)}`)
  return given.use === undefined ? readNamed(reader, given, choice, path) : readOwn(reader, given, choice, path)
}

/** Hint for a program that gives a name alone, which only files may do. */
function spelling(value: unknown, { variants }: Choice): string {
  if (typeof value !== "string") return ""
  const names = Object.keys(variants)
  const near = names.includes(value) ? value : nearestName(value, names)
  return near === undefined
    ? ` Write { name }, with one of ${names.join(", ")}.`
    : ` Write { name: ${JSON.stringify(near)} }, with its options next to the name.`
}

/** Expands the short forms of a file: a string is a name, and a name that is a path is a module. */
function spelledOut(value: unknown): unknown {
  const given = typeof value === "string" ? { name: value } : value
  if (!isObject(given) || given.use !== undefined) return given
  const { name, ...rest } = given
  return typeof name === "string" && isModulePath(name) ? { use: name, ...rest } : given
}

function readNamed(reader: Reader, given: Values, choice: Choice, path: readonly string[]): unknown {
  const { name = choice.default, use: _, ...rest } = given
  const names = Object.keys(choice.variants)
  const place = [...path, "name"]
  const own = reader.source === "file" ? " For a module of your own, give its path: ./mine.mjs." : ""
  if (name === undefined) return reader.complain(place, ` is missing. It is one of ${names.join(", ")}.${own}`)
  if (typeof name !== "string" || !names.includes(name)) {
    const wanted = names.map((one) => JSON.stringify(one)).join(" or ")
    const renamed = newValue(place, name, (one) => names.includes(one))
    if (renamed !== undefined) return reader.complain(place, ` ${display(name)} was renamed to ${renamed}.`)
    const near = nearestName(String(name), names)
    const hint = near === undefined ? own : ` Did you mean ${near}?`
    return reader.complain(place, ` must be ${wanted}, not ${display(name)}.${hint}`)
  }
  const fields = { ...choice.variants[name], ...choice.common }
  const found = readKnown(reader, rest, fields, path)
  for (const key of unknownKeys(rest, fields)) {
    const owners = names.filter((other) => Object.hasOwn(choice.variants[other]!, key))
    if (names.includes(key)) reader.complain([...path, key], namedAsGroup(path, key, rest[key]))
    else if (owners.length === 0) refuseUnknown(reader, [...path, key], fields, { names: ["name", "use"] })
    else if (choice.asGiven)
      reader.complain([...path, key], ` is an option of ${owners.join(" and ")}, not of ${name}.`)
    else if (rest[key] !== undefined)
      readForeign(reader, rest[key], choice.variants[owners[0]!]![key]!, [...path, key], Object.keys(fields))
  }
  return choice.asGiven ? { ...given, ...choicesIn(rest, fields, reader.source), name } : { name, ...found }
}

/**
 * Checks an option of another variant: it is accepted where that variant accepts it, so that changing `name` alone switches GiGPO to GRPO. A value that
 * only an earlier version of one of the `known` options accepted is rejected with the new name.
 */
function readForeign(reader: Reader, given: unknown, entry: Entry, path: readonly string[], known: readonly string[]) {
  const renamed = newName(path, known, reader.owner)
  if (renamed && "validate" in entry && entry.validate(given) !== undefined)
    reader.complain(path, ` was renamed to ${renamed.join(".")}.`)
  else readEntry(reader, given, entry, path)
}

/** Choices among options that are kept as given. In a file a choice may be a string, which is expanded. */
function choicesIn(given: Values, fields: OptionFields, source: Reader["source"]): Values {
  const chosen = Object.entries(given).filter(([key]) => "variants" in (fields[key] ?? {}))
  return Object.fromEntries(chosen.map(([key, value]) => [key, source === "file" ? spelledOut(value) : value]))
}

/** Reads a custom value. In a file, the other options are those of the module; they are checked when the module is loaded. */
function readOwn(reader: Reader, given: Values, { own, common }: Choice, path: readonly string[]): unknown {
  const { use, name, ...rest } = given
  if (name !== undefined) reader.complain(path, ` has both name and use; give one of them.`)
  if (reader.source === "code") {
    const wrong = own.validate(use)
    if (wrong !== undefined) reader.complain([...path, "use"], ended(` ${wrong}${notThis(use)}`))
    return { use, ...readFields(reader, rest, common, path, nothingBeside(path)) }
  }
  if (typeof use !== "string" || use.trim() === "")
    reader.complain([...path, "use"], ` must be the path of a module, not ${display(use)}.`)
  const others = unknownKeys(rest, common).map((key) => [key, rest[key]])
  return { use, ...readKnown(reader, rest, common, path), ...Object.fromEntries(others) }
}

function nothingBeside(path: readonly string[]): string {
  return `${path.join(".")} takes no options besides use`
}

/** Message about the name of a variant as a key, as `gigpo config` takes it: training.estimator.gigpo.omega. */
function namedAsGroup(path: readonly string[], name: string, given: unknown): string {
  const key = path.join(".")
  const options = isObject(given) ? Object.keys(given).map((option) => `${key}.${option}`) : []
  return ` is not an option; did you mean ${[`${key}.name: ${name}`, ...options].join(" and ")}?`
}

/** Complains about an unknown key of a group. `names` are keys besides its options; `none` ends the message if there are no keys. */
function refuseUnknown(
  reader: Reader,
  path: readonly string[],
  fields: OptionFields,
  { names = [], none }: { readonly names?: readonly string[]; readonly none?: string },
): void {
  const siblings = [...names, ...Object.keys(fields)]
  const renamed = newName(path, siblings, reader.owner)
  const meant = renamed ? undefined : meantBy(path, reader.keys(), fields)
  const known = siblings.length === 0 ? `${none}.` : `known: ${siblings.join(", ")}.`
  const hint = meant ? `did you mean ${meant.join(".")}?` : known
  reader.complain(path, renamed ? ` was renamed to ${renamed.join(".")}.` : ` is not an option; ${hint}`)
}

/** Key that an unknown one probably means: by its name in TRL or verl, by its spelling, or by its words. */
function meantBy(
  path: readonly string[],
  keys: readonly (readonly string[])[],
  fields: OptionFields,
): readonly string[] | undefined {
  const key = otherKey(path, keys) ?? nearestKey(path, keys)
  if (key) return key
  const option = describedBy(path.at(-1)!, fields)
  return option === undefined ? undefined : [...path.slice(0, -1), option]
}

/** Whether a value is an object and not an array. */
export function isObject(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}
