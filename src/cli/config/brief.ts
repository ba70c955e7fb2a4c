import type { Entry, OptionFields } from "../../options/table.ts"
import { entryAt } from "./entry-at.ts"
import { configFields } from "./fields.ts"
import { mainKeys } from "./main-keys.ts"
import { inline } from "./words.ts"

/** Column where comments begin. */
const column = 44

/** The main options as YAML under headings: each on one line with its default and the first sentence of its help. */
export function renderMainKeys(): string {
  const lines = [
    "# The main options of a configuration, with their defaults; commented out if there is none.",
    "# gigpo config <key> explains an option and all options below it: training, training.estimator.hgpo. --all explains every option.",
  ]
  let above: readonly string[] = []
  for (const { title, keys } of mainKeys) {
    lines.push("", `# ${title}`)
    for (const key of keys) {
      const path = key.split(".")
      const off = isOptional(path) ? "# " : ""
      const shared = path.findIndex((name, depth) => depth === path.length - 1 || name !== above[depth])
      for (const [depth, name] of path.slice(0, -1).entries())
        if (depth >= shared) lines.push(`${"  ".repeat(depth)}${off}${name}:`)
      lines.push(keyLine(path, off))
      above = path
    }
  }
  return `${lines.join("\n")}\n`
}

/** Whether a group above a key is absent by default, is required, or has no main key with a value. */
function isOptional(path: readonly string[]): boolean {
  return path.slice(0, -1).some((_, depth) => {
    const group = path.slice(0, depth + 1).join(".")
    const { entry } = entryAt(group)
    const absent = "defaultText" in entry || ("variants" in entry && entry.default === undefined)
    return absent || keysBelow(group).every((key) => describe(key.split("."))[0] === undefined)
  })
}

function keysBelow(group: string): readonly string[] {
  return mainKeys.flatMap(({ keys }) => keys).filter((key) => key.startsWith(`${group}.`))
}

function keyLine(path: readonly string[], off: string): string {
  const [value, words] = describe(path)
  const prefix = value === undefined && off === "" ? "# " : off
  const text = `${"  ".repeat(path.length - 1)}${prefix}${path.at(-1)}:${value === undefined ? "" : ` ${inline(value)}`}`
  return `${text.padEnd(column)} # ${words}`
}

/** Default and description of a key. "name" is described by its choice. */
function describe(path: readonly string[]): readonly [value: unknown, words: string] {
  const above = path.slice(0, -1).join(".")
  const choice = path.at(-1) === "name" ? entryAt(above).entry : undefined
  if (choice && "variants" in choice) {
    const names = Object.keys(choice.variants)
    const list = names.length > 5 ? `${names.length} choices; list: gigpo config ${path.join(".")}` : names.join(" | ")
    return [choice.default, `${firstSentence(choice.help)} (${list}).`]
  }
  const entry: Entry & { readonly default?: unknown; readonly defaultText?: string | undefined } = entryIn(path)
  const required = "required" in entry ? " Required." : ""
  const otherwise =
    entry.default === undefined && entry.defaultText !== undefined ? ` Default: ${entry.defaultText}.` : ""
  return [entry.default, `${firstSentence(entry.help)}${valuesOf(entry)}.${required}${otherwise}`]
}

/** Entry of a key; below a choice, that of the default variant. */
function entryIn(path: readonly string[]): Entry {
  let fields: OptionFields = configFields
  let entry: Entry | undefined
  for (const name of path) {
    entry = fields[name]!
    if ("fields" in entry) fields = entry.fields
    else if ("variants" in entry) fields = { ...entry.variants[entry.default ?? ""], ...entry.common }
  }
  return entry!
}

/**
 * Values of an enumeration, such as " (auto
 * cpu
 * cuda)"; empty for other entries.
 */
function valuesOf(entry: Entry): string {
  const values = "validate" in entry ? entry.schema?.enum : undefined
  return values ? ` (${values.map(inline).join(" | ")})` : ""
}

/** First sentence of a help text, without the full stop and without the command in front, which the heading names. Parentheses are kept whole. */
function firstSentence(help: string): string {
  const [first] = help.replace(/^gigpo \w+: /, "").split(/(?:(?<=[^.])\. |\.$|; |: (?=[a-z]))(?![^(]*\))/)
  return first!.replace(/^[a-z]/, (letter) => letter.toUpperCase())
}
