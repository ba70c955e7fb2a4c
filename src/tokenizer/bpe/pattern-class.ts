import { classSource, escaped } from "./code-points.ts"
import { Unsupported } from "./fields.ts"
import { patternWordSource, propertySource } from "./unicode.ts"

/** Place in a pattern; `characters` are code points. */
export interface Cursor {
  readonly pattern: string
  readonly characters: readonly string[]
  at: number
}

const controls: Readonly<Record<string, number>> = { n: 0xa, r: 0xd, t: 0x9, f: 0xc, v: 0xb, a: 0x7, e: 0x1b }
const shorthands: Readonly<Record<string, () => string>> = {
  s: () => propertySource("White_Space")!,
  d: () => propertySource("Nd")!,
  w: patternWordSource,
}

/** Reads the escape at the cursor, for a regular expression with flag v. */
export function readEscape(cursor: Cursor, ignoreCase: boolean): string {
  const meaning = readSetEscape(cursor, ignoreCase)
  return typeof meaning === "number" ? caseVariants(cursor, meaning, ignoreCase) : meaning
}

/** Reads an escape as a class or a code point. */
function readSetEscape(cursor: Cursor, ignoreCase: boolean): string | number {
  const rest = cursor.characters.slice(cursor.at + 1, cursor.at + 32).join("")
  const [kind = ""] = cursor.characters.slice(cursor.at + 1)
  const take = <T>(length: number, value: T): T => {
    cursor.at += 1 + length
    return value
  }
  if (Object.hasOwn(controls, kind)) return take(1, controls[kind]!)
  if (/^[!-/:-@[-`{-~ ]$/.test(kind)) return take(1, kind.codePointAt(0)!)
  const [number, ...digits] = /^(?:x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))/.exec(rest) ?? []
  if (number !== undefined) {
    const value = Number.parseInt(digits.find((group) => group !== undefined)!, 16)
    // In Oniguruma \xHH from 80 is a byte, not a character.
    if (value < 0x110000 && !(digits[1] && value >= 0x80)) return take(number.length, value)
  }
  const [named, sign, name] = /^([pP])\{(\w+)\}/.exec(rest) ?? []
  const set = named ? propertySource(name!) : shorthands[kind.toLowerCase()]?.()
  // Only white space and digits have no case; classes of letters would also match the other case.
  if (set && !(ignoreCase && named && name !== "White_Space") && !(ignoreCase && /[wW]/.test(kind)))
    return take(named?.length ?? 1, /[A-Z]/.test(sign ?? kind) ? `[^${set}]` : set)
  throw unsupported(cursor, `\\${named ?? kind}${ignoreCase ? " within (?i:" : ""}`)
}

/** Reads the bracketed class at the cursor, for a regular expression with flag v. */
export function readClass(cursor: Cursor, ignoreCase: boolean): string {
  const { characters } = cursor
  cursor.at++
  const negated = characters[cursor.at] === "^"
  if (negated) cursor.at++
  if (characters[cursor.at] === "]") throw unsupported(cursor, "an empty class")
  if (negated && ignoreCase) throw unsupported(cursor, "[^ within (?i:")
  const operands = [""]
  while (characters[cursor.at] !== "]") {
    if (cursor.at >= characters.length) throw unsupported(cursor, "a class without its end")
    if (characters[cursor.at] === "&" && characters[cursor.at + 1] === "&") {
      cursor.at += 2
      operands.push("")
    } else operands.push(operands.pop()! + readMember(cursor, ignoreCase))
  }
  cursor.at++
  const inner = operands.length === 1 ? operands[0]! : operands.map((operand) => `[${operand}]`).join("&&")
  return `[${negated ? "^" : ""}${inner}]`
}

function readMember(cursor: Cursor, ignoreCase: boolean): string {
  const { characters } = cursor
  if (characters[cursor.at] === "[") {
    if (characters[cursor.at + 1] === ":") throw unsupported(cursor, "[:")
    return readClass(cursor, ignoreCase)
  }
  const first = readSingle(cursor, ignoreCase)
  if (typeof first !== "number") return first
  const ranged = characters[cursor.at] === "-" && characters[cursor.at + 1] !== "]"
  if (!ranged) return caseVariants(cursor, first, ignoreCase)
  cursor.at++
  const last = characters[cursor.at] === "[" ? "" : readSingle(cursor, ignoreCase)
  if (typeof last !== "number" || last < first) throw unsupported(cursor, "a range without its end")
  if (!ignoreCase) return classSource([first, last + 1])
  const each = Array.from({ length: last - first + 1 }, (_, i) => caseVariants(cursor, first + i, true))
  return `[${each.join("")}]`
}

function readSingle(cursor: Cursor, ignoreCase: boolean): string | number {
  if (cursor.characters[cursor.at] === "\\") return readSetEscape(cursor, ignoreCase)
  return cursor.characters[cursor.at++]!.codePointAt(0)!
}

/** Non-ASCII case variants of ASCII letters: the long s and the Kelvin sign. */
const foreignForms: Readonly<Record<string, number>> = { s: 0x17f, k: 0x212a }

/** Character with its case variants, if case is ignored. */
export function caseVariants(cursor: Cursor, codePoint: number, ignoreCase: boolean): string {
  if (!ignoreCase) return escaped(codePoint)
  if (codePoint >= 0x80) throw unsupported(cursor, `${String.fromCodePoint(codePoint)} within (?i:`)
  const lower = String.fromCharCode(codePoint).toLowerCase()
  const forms = new Set([lower.charCodeAt(0), lower.toUpperCase().charCodeAt(0), foreignForms[lower] ?? codePoint])
  return forms.size === 1 ? escaped(codePoint) : `[${[...forms].map(escaped).join("")}]`
}

function unsupported({ pattern }: Cursor, what: string): Unsupported {
  return new Unsupported(`has a pattern with ${what}, which is not supported: ${pattern.slice(0, 200)}`)
}
