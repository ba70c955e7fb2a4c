import { fail, unsupported } from "./errors.ts"
import { escapeChar } from "./print.ts"
import type { Value } from "./values.ts"

const simple: Readonly<Record<string, string>> = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
}
const widths: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 }

/** The text of a string literal without its quotes. */
export function unescapeLiteral(literal: string): string {
  if (!literal.includes("\\")) return literal
  return literal.replace(/\\(?:([0-7]{1,3})|([xuU])([\da-fA-F]{0,8})|(.))/gsu, (whole, octal, kind, digits, other) => {
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8))
    if (kind !== undefined) return codePoint(kind, digits)
    if (other === "N") return unsupported("the escape \\N")
    // Jinja2 escapes non-ASCII characters first, so a backslash before one escapes the new backslash.
    return simple[other] ?? (other > "\x7f" ? escapeChar(other) : whole)
  })
}

function codePoint(kind: string, digits: string): string {
  const width = widths[kind] as number
  if (digits.length < width) fail("TemplateSyntaxError", `truncated \\${kind} escape`)
  const code = Number.parseInt(digits.slice(0, width), 16)
  if (code > 0x10ffff) fail("TemplateSyntaxError", "illegal Unicode character")
  if (code >= 0xd800 && code < 0xe000) unsupported("a surrogate in a text literal")
  return String.fromCodePoint(code) + digits.slice(width)
}

/** The value of an integer or float literal. */
export function numberLiteral(type: "integer" | "float", literal: string): Value {
  const digits = literal.replaceAll("_", "")
  if (type === "integer") {
    if (digits.length > 4300)
      fail("TemplateSyntaxError", "Exceeds the limit (4300 digits) for integer string conversion")
    return BigInt(digits)
  }
  const value = Number(digits)
  return Number.isFinite(value) ? value : unsupported(`the number ${literal}`)
}
