import { numeric, sorted } from "./compare.ts"
import { Dict } from "./dict.ts"
import { fail } from "./errors.ts"
import { limited, reserve, step } from "./limits.ts"
import { floatText, intText } from "./print.ts"
import { isList, iterate, Markup, Tuple, truthy, typeName, type Value } from "./values.ts"

interface Style {
  readonly ascii: boolean
  readonly indent: string | undefined
  readonly item: string
  readonly key: string
  readonly sort: boolean
}

/** Python's json.dumps, which is the filter `tojson` in transformers. */
export function toJson(
  value: Value,
  ascii: Value = false,
  indent: Value = null,
  separators: Value = null,
  sort: Value = false,
): string {
  const [item, key] = separators === null ? [indent === null ? ", " : ",", ": "] : pair(separators)
  return limited(
    write(value, { ascii: truthy(ascii), indent: indentation(indent), item, key, sort: truthy(sort) }, "\n"),
  )
}

function pair(separators: Value): [string, string] {
  const parts = [...iterate(separators)]
  if (parts.length !== 2)
    fail("ValueError", `not enough or too many values to unpack (expected 2, got ${parts.length})`)
  for (const part of parts) if (typeof part !== "string") fail("TypeError", "a separator of JSON must be a str")
  return parts as [string, string]
}

function indentation(indent: Value): string | undefined {
  if (indent === null) return undefined
  if (typeof indent === "string") return indent
  const width = numeric(indent)
  if (typeof width !== "bigint")
    return fail("TypeError", `can't multiply sequence by non-int of type '${typeName(indent)}'`)
  reserve(Math.max(Number(width), 0))
  return " ".repeat(Math.max(Number(width), 0))
}

function write(value: Value, style: Style, line: string): string {
  step()
  if (value === null) return "null"
  if (typeof value === "boolean") return value ? "true" : "false"
  if (typeof value === "bigint") return intText(value)
  if (typeof value === "number") return jsonFloat(value)
  if (typeof value === "string") return jsonText(value, style.ascii)
  if (value instanceof Markup) return jsonText(value.text, style.ascii)
  const inner = style.indent === undefined ? line : line + style.indent
  if (isList(value) || value instanceof Tuple) {
    const items = isList(value) ? value : value.items
    return enclose(
      "[]",
      items.map((item) => write(item, style, inner)),
      style,
      line,
    )
  }
  if (!(value instanceof Dict)) return fail("TypeError", `Object of type ${typeName(value)} is not JSON serializable`)
  let entries = [...value.entries()]
  if (style.sort) {
    const ordered = sorted(
      entries.map(([key, member]) => new Tuple([key, member])),
      (entry) => (entry as Tuple).items[0] as Value,
      false,
    )
    entries = ordered.map((entry) => (entry as Tuple).items as [Value, Value])
  }
  const members = entries.map(([key, member]) => keyText(key, style.ascii) + style.key + write(member, style, inner))
  return enclose("{}", members, style, line)
}

function enclose(marks: string, parts: readonly string[], { indent, item }: Style, line: string): string {
  if (parts.length === 0) return marks
  const inner = indent === undefined ? "" : line + indent
  return limited(marks[0] + inner + parts.join(item + inner) + (indent === undefined ? "" : line) + marks[1])
}

function keyText(key: Value, ascii: boolean): string {
  if (typeof key === "string") return jsonText(key, ascii)
  if (key instanceof Markup) return jsonText(key.text, ascii)
  if (key === null || typeof key === "boolean") return `"${JSON.stringify(key)}"`
  if (typeof key === "bigint") return `"${intText(key)}"`
  if (typeof key === "number") return `"${jsonFloat(key)}"`
  return fail("TypeError", `keys must be str, int, float, bool or None, not ${typeName(key)}`)
}

function jsonFloat(value: number): string {
  if (Number.isFinite(value)) return floatText(value)
  return Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity"
}

const short: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\f": "\\f",
  "\b": "\\b",
}

function jsonText(value: string, ascii: boolean): string {
  const escaped = value.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what JSON escapes
    ascii ? /["\\]|[^ -~]/g : /["\\\0-\x1f]/g,
    (unit) => short[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )
  return `"${escaped}"`
}
