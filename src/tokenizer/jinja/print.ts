import { Dict, DictView } from "./dict.ts"
import { fail } from "./errors.ts"
import { limited, reserve, step } from "./limits.ts"
import { isList, Markup, Tuple, Undefined, type Value } from "./values.ts"

/** str() of a value. */
export function str(value: Value): string {
  if (typeof value === "string") return value
  if (value instanceof Markup) return value.text
  return value instanceof Undefined ? "" : repr(value)
}

/** repr() of a value. */
export function repr(value: Value): string {
  step()
  if (typeof value === "string") return quote(value)
  if (typeof value === "bigint") return intText(value)
  if (typeof value === "number") return floatText(value)
  if (value === null) return "None"
  if (typeof value === "boolean") return value ? "True" : "False"
  if (isList(value)) return limited(`[${value.map(repr).join(", ")}]`)
  if (value instanceof Tuple) return limited(`(${value.items.map(repr).join(", ")}${value.length === 1 ? "," : ""})`)
  if (value instanceof Dict)
    return limited(`{${Array.from(value.entries(), ([key, member]) => `${repr(key)}: ${repr(member)}`).join(", ")}}`)
  if (value instanceof DictView) return limited(`${value.typeName}(${repr(Array.from(value.iterate()))})`)
  return value.repr()
}

/** Decimal text of an integer. Fails above 4300 digits, as in Python. */
export function intText(value: bigint): string {
  if (value > -(2n ** 62n) && value < 2n ** 62n) return value.toString()
  reserve(value.toString(16).length)
  const text = value.toString()
  if (text.length - Number(value < 0n) > 4300)
    fail("ValueError", "Exceeds the limit (4300 digits) for integer string conversion")
  return text
}

/** Shortest decimal of a float, with an exponent below 1e-4 and from 1e16. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan"
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf"
  const [mantissa, power] = value.toExponential().split("e") as [string, string]
  const exponent = Number(power)
  const sign = Object.is(value, -0) ? "-" : ""
  if (exponent < -4 || exponent >= 16)
    return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`
  if (exponent >= 0) return `${sign}${value}${Number.isInteger(value) ? ".0" : ""}`
  const digits = mantissa.replace(/[-.]/g, "")
  return `${value < 0 ? "-" : ""}0.${"0".repeat(-exponent - 1)}${digits}`
}

/** Non-printable characters by str.isprintable, except the space. */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}]/u
export const isPrintable = (text: string) => Array.from(text).every((char) => char === " " || !unprintable.test(char))

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" }

export function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'"
  let quoted = mark
  for (const char of text)
    quoted += escapes[char] ?? (char === mark ? `\\${char}` : isPrintable(char) ? char : escapeChar(char))
  return limited(quoted + mark)
}

export function escapeChar(char: string): string {
  const code = char.codePointAt(0) as number
  const [letter, width] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8]
  return `\\${letter}${code.toString(16).padStart(width as number, "0")}`
}

/** ascii() of a value. */
export function ascii(value: Value): string {
  return limited(repr(value).replace(/[\u0080-\u{10ffff}]/gu, escapeChar))
}
