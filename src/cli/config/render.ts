import { rampFields } from "../../options/field.ts"
import { fieldsOf } from "../../options/keys.ts"
import type { Choice, Entry, OptionFields } from "../../options/table.ts"
import type { Config } from "./config.ts"
import { entryAt, type Selector } from "./entry-at.ts"
import { configFields } from "./fields.ts"
import { explain, inline } from "./words.ts"

type Given = Readonly<Record<string, unknown>> | undefined

interface Page {
  readonly lines: string[]
  /** Option tables of modules, by the dotted path of the module's key. */
  readonly modules: ReadonlyMap<string, OptionFields>
  /** Whether options of other variants are shown. */
  readonly all: boolean
  /** Variants named by the key, by the dotted path of the choice. */
  readonly chosen: ReadonlyMap<string, string>
  /** Key of a choice that alone is shown. */
  readonly selector?: Selector | undefined
}

/** Selection of what to show. */
interface Shown {
  /** Dotted key of a part, shown with all keys below it. Default: everything. */
  readonly key?: string | undefined
  /** Whether options of other variants are shown, such as those of every estimator. Default: true without `key`. */
  readonly all?: boolean | undefined
}

/**
 * Renders a configuration as YAML with the description of every key. Without a configuration, renders the defaults;
 * keys without a default are commented out.
 *
 * @param modules - option tables of the configuration's modules.
 */
export function renderConfig(
  config?: Config,
  modules: ReadonlyMap<string, OptionFields> = new Map(),
  { key, all = key === undefined }: Shown = {},
): string {
  if (key !== undefined) return renderKey(key, config, modules, all)
  const page: Page = { lines: [], modules, all, chosen: new Map() }
  comment(
    page,
    "",
    `A number that "accepts a schedule" may be ${ramp}: a ramp from one number to another. ${rampWords}`,
  )
  for (const [key, entry] of Object.entries(configFields)) {
    page.lines.push("")
    renderEntry(page, [key], entry, config as unknown as Given, "")
  }
  return `${page.lines.join("\n")}\n`
}

function renderKey(key: string, config: Config | undefined, modules: Page["modules"], all: boolean): string {
  const { path, entry, chosen, selector } = entryAt(key)
  const above = path.slice(0, -1)
  const valueAt = (place: readonly string[]) =>
    place.reduce<Given>((value, name) => value?.[name] as Given, config as unknown as Given)
  const page: Page = {
    lines: above.map((name, depth) => `${"  ".repeat(depth)}${name}:`),
    modules,
    all,
    chosen,
    selector,
  }
  // The configuration has no values for a variant that it does not use.
  const other = [...chosen].some(([place, name]) => valueAt(place.split("."))?.name !== name)
  renderEntry(page, path, entry, other ? undefined : valueAt(above), "")
  return `${page.lines.join("\n")}\n`
}

const ramp = "{ from: 1, to: 0.5, over: 50, after: 10, shape: linear }"
const rampWords = Object.entries(rampFields)
  .map(([key, entry]) => `${key}: ${explain(entry)}`)
  .join(" ")

/** Renders an entry. `prefix` is put before every line: "# " for a part that is only shown as a comment. */
function renderEntry(page: Page, path: readonly string[], entry: Entry, given: Given, prefix: string): void {
  if ("codeOnly" in entry) return
  const key = path.at(-1)!
  const value = given?.[key]
  comment(page, indent(path, prefix), explain(entry))
  if ("validate" in entry) {
    const shown = value ?? (given === undefined || prefix !== "" ? entry.default : undefined)
    page.lines.push(...keyLine(path, shown, entry.default, prefix))
  } else if ("variants" in entry) renderChoice(page, path, entry, value as Given, prefix)
  else {
    // An absent group is shown as a comment; so is a group without values, which YAML would read as empty.
    const absent = ("defaultText" in entry && value === undefined) || saysNothing(entry.fields, value as Given)
    const within = absent ? "# " : prefix
    page.lines.push(`${indent(path, within)}${key}:`)
    renderFields(page, path, entry.fields, value as Given, within)
  }
}

function saysNothing(fields: OptionFields, given: Given): boolean {
  return Object.entries(fields).every(
    ([key, entry]) => "validate" in entry && (given === undefined ? entry.default : given[key]) === undefined,
  )
}

function renderFields(page: Page, path: readonly string[], fields: OptionFields, given: Given, prefix: string): void {
  for (const [key, entry] of Object.entries(fields)) renderEntry(page, [...path, key], entry, given, prefix)
}

function renderChoice(page: Page, path: readonly string[], choice: Choice, given: Given, prefix: string): void {
  const { use, sha256, name = use === undefined ? choice.default : undefined } = given ?? {}
  // An absent optional choice is shown as a comment.
  const within = "defaultText" in choice && given === undefined ? "# " : prefix
  const line = (key: string, value: unknown) => page.lines.push(...keyLine([...path, key], value, undefined, within))
  page.lines.push(`${indent(path, within)}${path.at(-1)}:`)
  const below = indent([...path, "name"], within)
  const named = page.chosen.has(path.join("."))
  const names = Object.keys(choice.variants).join(", ")
  const shows = (key: Selector) => page.selector === undefined || page.selector === key
  if (shows("name")) {
    const module = "path of a module (./mine.mjs), relative to this file"
    if (!named) comment(page, below, names === "" ? `The ${module}.` : `One of ${names}; or the ${module}.`)
    line("name", name)
  }
  if (!named && shows("use")) {
    comment(page, below, "Path of a module, instead of `name`. Write the module's options next to it.")
    line("use", use)
  }
  if (page.selector !== undefined) return
  if (sha256 !== undefined) line("sha256", sha256)
  const module = page.modules.get(path.join("."))
  renderFields(page, path, { ...(use === undefined ? {} : module), ...fieldsOf(choice, given) }, given, within)
  if (given === undefined) (page.all ? renderOthers : nameOthers)(page, path, choice, below)
}

/** Options of the other variants. Each is explained where it first occurs, and again if its default differs. */
function renderOthers(
  page: Page,
  path: readonly string[],
  { variants, default: fallback }: Choice,
  below: string,
): void {
  const explained = new Set<Entry>(fallback === undefined ? [] : Object.values(variants[fallback]!))
  for (const [variant, fields] of Object.entries(variants)) {
    if (variant === fallback) continue
    const names = Object.keys(fields)
    page.lines.push("")
    const fresh = Object.entries(fields).filter(([, entry]) => !explained.has(entry))
    const where =
      fresh.length === names.length
        ? ""
        : fresh.length === 0
          ? " (explained above)"
          : " (those not below are explained above)"
    comment(page, below, `Options of ${variant}: ${names.length === 0 ? "none" : names.join(", ")}${where}.`)
    renderFields(page, path, Object.fromEntries(fresh), undefined, "# ")
    for (const [, entry] of fresh) explained.add(entry)
  }
}

/** Notes how to show the options of another variant. */
function nameOthers(page: Page, path: readonly string[], { variants, default: fallback }: Choice, below: string): void {
  const other = Object.keys(variants).find((name) => name !== fallback)
  if (other === undefined) return
  comment(page, below, `Options of a different choice: gigpo config ${path.join(".")}.${other}.`)
}

/** Line of a key with its value; commented out without a value, with the default. */
function keyLine(path: readonly string[], value: unknown, fallback: unknown, prefix: string): string[] {
  const off = value === undefined && prefix === "" ? "# " : prefix
  const shown = value ?? fallback
  return [`${indent(path, off)}${path.at(-1)}:${shown === undefined ? "" : ` ${inline(shown)}`}`]
}

function comment(page: Page, before: string, text: string): void {
  for (const line of wrap(text, 110 - before.length)) page.lines.push(`${before}# ${line}`)
}

function indent(path: readonly string[], prefix: string): string {
  return "  ".repeat(path.length - 1) + prefix
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(" ").filter((one) => one !== "")) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}
