import { escapeUnit, hex, pythonJson } from "../python-text.ts"

// Python's formatting and escaping, as WebShop's pages use them. JavaScript's functions differ slightly, and the pages must be identical.

/** `str(float)`: shortest digits, always with a point; exponential notation below 1e-4 and from 1e16. */
export function formatFloat(value: number): string {
  const [digits, exponent] = value.toExponential().split("e") as [string, string]
  const power = Number(exponent)
  if (power < -4 || power >= 16) {
    return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`
  }
  const plain = String(value)
  return plain.includes(".") ? plain : `${plain}.0`
}

/** Flask's `tojson` of a dict of strings: keys sorted, ASCII only, safe inside HTML. */
export function formatJson(entries: ReadonlyMap<string, string>): string {
  const sorted = [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${sorted.map(([key, value]) => `${quote(key)}: ${quote(value)}`).join(", ")}}`
}

function quote(text: string): string {
  return pythonJson(text).replace(/['<>&]/g, escapeUnit)
}

/** `repr(str)` without quotes, and without backslashes that escape quotes. Unprintable characters become escapes. */
export function reprBody(text: string): string {
  return Array.from(text, (character) => {
    if (character === " " || !/[\p{C}\p{Z}]/u.test(character)) return character
    const short = { "\t": "\\t", "\n": "\\n", "\r": "\\r" }[character]
    if (short) return short
    const code = character.codePointAt(0)!
    if (code < 0x100) return `\\x${hex(code, 2)}`
    return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`
  }).join("")
}
