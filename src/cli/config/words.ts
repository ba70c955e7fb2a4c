import { stringify } from "yaml"
import { ended } from "../../options/display.ts"
import type { Entry, OptionField } from "../../options/table.ts"
import { visible } from "../../util/visible.ts"
import { escaped } from "../terminal/print-json.ts"

/** Description of an option: help, and default if there is one. */
export function explain(entry: Entry): string {
  const words = [entry.help]
  if ("changes" in entry) words.push("Accepts a schedule.")
  const { defaultText, default: fallback } = entry as Partial<OptionField<unknown>>
  if ("validate" in entry && fallback !== undefined) words.push(ended(`Default ${inline(fallback)}`))
  else if (defaultText !== undefined) words.push(`Default: ${defaultText}.`)
  return words.join(" ")
}

/** A value as YAML on one line. */
export function inline(value: unknown): string {
  const text = stringify(value, { collectionStyle: "flow", flowCollectionPadding: false, lineWidth: 0 }).trim()
  // JSON is valid YAML and escapes control characters that a terminal would execute.
  return visible(text) === text ? text : escaped(JSON.stringify(value))
}
