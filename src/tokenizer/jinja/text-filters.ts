import { index, table, text } from "./arguments.ts"
import { binary } from "./arithmetic.ts"
import { compare, numeric } from "./compare.ts"
import { Dict } from "./dict.ts"
import { fail, unsupported } from "./errors.ts"
import { limited, reserve } from "./limits.ts"
import { str } from "./print.ts"
import { capitalize, center, replaceText, strip } from "./text-methods.ts"
import { spaceClass, splitLines } from "./unicode.ts"
import { isIterable, iterate, lengthOf, Markup, Tuple, truthy, typeName, Undefined, type Value } from "./values.ts"

/** str() of an argument. Fails for escaped text, which would stay escaped. */
function soft(value: Value): string {
  return value instanceof Markup ? unsupported("a filter of escaped or safe text") : str(value)
}

const wordStart = new RegExp(`([-${spaceClass}({\\[<]+)`)

function title(value: Value): string {
  const parts = soft(value).split(wordStart)
  const titled = parts.map((part) => {
    const [first, ...rest] = part
    return first === undefined ? "" : first.toUpperCase() + rest.join("").toLowerCase()
  })
  return limited(titled.join(""))
}

function indent(value: Value, width: Value = 4n, first: Value = false, blank: Value = false): string {
  const indention = typeof width === "string" ? width : repeatSpaces(width)
  const [head = "", ...rest] = splitLines(lines(value))
  reserve((rest.length + 1) * (indention.length + 1))
  const indented = rest.map((line) => (line === "" && !truthy(blank) ? line : indention + line))
  return limited((truthy(first) ? indention : "") + [head, ...indented].join("\n"))
}

const lines = (value: Value) => str(binary("+", value, "\n"))
const repeatSpaces = (width: Value) => str(binary("*", " ", width))

function replace(value: Value, old: Value, fresh: Value, count: Value = null): string {
  return replaceText(str(value), str(old), str(fresh), count === null ? -1 : index(count))
}

function truncate(
  value: Value,
  length: Value = 255n,
  kill: Value = false,
  end: Value = "...",
  leeway: Value = null,
): Value {
  const room = leeway === null ? 5n : leeway
  const mark = text(end)
  if (!compare(">=", length, lengthOf(mark) === undefined ? 0n : BigInt(lengthOf(mark) as number)))
    fail("AssertionError", `expected length >= ${lengthOf(mark)}`)
  if (!compare(">=", room, 0n)) fail("AssertionError", "expected leeway >= 0")
  const size = lengthOf(value)
  if (value instanceof Markup) unsupported("a filter of escaped or safe text")
  if (size === undefined) return fail("TypeError", `object of type '${typeName(value)}' has no len()`)
  if (compare("<=", BigInt(size), binary("+", length, room))) return value
  const kept = Array.from(text(value))
    .slice(0, index(length) - Array.from(mark).length)
    .join("")
  const at = kept.lastIndexOf(" ")
  return limited((truthy(kill) || at < 0 ? kept : kept.slice(0, at)) + mark)
}

/** urllib.parse.quote. */
function quote(value: Value, safe: string): string {
  const unreserved = new RegExp(`[^\\w.~${safe}-]`, "gu")
  const source = str(value)
  if (/[\ud800-\udfff]/u.test(source)) fail("ValueError", "surrogates not allowed")
  const encode = (char: string) =>
    Array.from(new TextEncoder().encode(char), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(
      "",
    )
  return limited(source.replace(unreserved, encode))
}

function urlEncode(value: Value): string {
  if (typeof value === "string" || !isIterable(value)) return quote(value, "/")
  const pairs = value instanceof Dict ? Array.from(value.entries()) : Array.from(iterate(value), pairOf)
  const plus = (part: Value) => quote(part, "").replaceAll("%20", "+")
  return pairs.map(([key, member]) => `${plus(key)}=${plus(member)}`).join("&")
}

function pairOf(item: Value): [Value, Value] {
  const parts = [...iterate(item)]
  return parts.length === 2 ? (parts as [Value, Value]) : fail("ValueError", "too many or not enough values to unpack")
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
}

function escapeHtml(value: Value): Markup {
  if (value instanceof Markup) return value
  return new Markup(limited(str(value).replace(/[&<>"']/g, (char) => entities[char] as string)))
}

const words = /[\p{L}\p{N}_]+/gu

export const textFilters = table({
  "capitalize(s)": (value: Value) => capitalize(soft(value)),
  "center(value width?)": (value: Value, width: Value = 80n) => center(soft(value), width),
  "e(s)": escapeHtml,
  "escape(s)": escapeHtml,
  "indent(s width? first? blank?)": indent,
  "lower(s)": (value: Value) => limited(soft(value).toLowerCase()),
  "replace(s old new count?)": replace,
  "safe(value)": (value: Value) => (value instanceof Markup ? value : new Markup(str(value))),
  "string(s)": (value: Value) => (value instanceof Markup ? value : str(value)),
  "title(s)": title,
  "trim(value chars?)": (value: Value, chars: Value = null) => strip(soft(value), chars),
  "truncate(s length? killwords? end? leeway?)": truncate,
  "upper(s)": (value: Value) => limited(soft(value).toUpperCase()),
  "urlencode(value)": urlEncode,
  "wordcount(s)": (value: Value) => BigInt(soft(value).match(words)?.length ?? 0),
})

/** The filter `format`, which takes any arguments. */
export function formatFilter(value: Value, positional: readonly Value[], named: ReadonlyMap<string, Value>): Value {
  if (positional.length > 0 && named.size > 0)
    fail("TypeError", "can't handle positional and keyword arguments at the same time")
  return binary("%", soft(value), named.size > 0 ? Dict.of(named) : new Tuple(positional))
}

/** The filter `abs`. */
export function abs(value: Value): Value {
  if (value instanceof Undefined) return fail("TypeError", "bad operand type for abs(): 'Undefined'")
  const number = numeric(value)
  if (number === undefined) return fail("TypeError", `bad operand type for abs(): '${typeName(value)}'`)
  return number < 0 ? -number : number === 0 ? (typeof number === "bigint" ? 0n : 0) : number
}
