// Python's splitting, stripping and escaping of strings, for texts that must be identical. JavaScript's functions differ slightly.

// White space as str.isspace() defines it. Unlike \s it includes U+001C to U+001F and U+0085, and excludes U+FEFF.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are white space in Python
const spaces = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/

/** `str.isspace()` of one character. */
export function isSpace(character: string): boolean {
  return spaces.test(character)
}

/** `str.split()`. */
export function splitWords(text: string): string[] {
  return text.split(spaces).filter((word) => word !== "")
}

/** `str.strip()`. */
export function strip(text: string): string {
  return stripAny(text, isSpace)
}

/** `str.strip(character)`. */
export function stripCharacter(text: string, unwanted: string): string {
  return stripAny(text, (character) => character === unwanted)
}

// No regular expression: a pattern that ends in `+$` takes quadratic time on long runs in the middle.
function stripAny(text: string, unwanted: (character: string) => boolean): string {
  let start = 0
  let end = text.length
  while (start < end && unwanted(text[start]!)) start++
  while (end > start && unwanted(text[end - 1]!)) end--
  return text.slice(start, end)
}

/** String as Python's `json.dumps` writes it: printable ASCII only. */
export function pythonJson(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/g, escapeUnit)
}

/** `\uXXXX` for a UTF-16 code unit. */
export function escapeUnit(unit: string): string {
  return `\\u${hex(unit.charCodeAt(0), 4)}`
}

/** Hexadecimal number of at least `digits` digits. */
export function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0")
}
