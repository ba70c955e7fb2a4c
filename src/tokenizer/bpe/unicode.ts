import { lazy } from "../../util/lazy.ts"
import { type CodePoints, classSource, difference, parseCodePoints, rangeSource, union } from "./code-points.ts"
import {
  categoryNames,
  categoryRuns,
  formerPunctuation,
  laterNormalization,
  laterNumbers,
  laterPunctuation,
} from "./unicode-tables.ts"

const categories = lazy<ReadonlyMap<string, CodePoints>>(() => {
  const sets = new Map<string, number[]>(categoryNames.map((name) => [name, []]))
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^"
  let at = 0
  for (const [, letter, length] of categoryRuns.matchAll(/([A-Z[\]^])([0-9a-v]*)/g)) {
    const end = at + (length ? Number.parseInt(length, 32) : 1)
    sets.get(categoryNames[letters.indexOf(letter!)]!)!.push(at, end)
    at = end
  }
  return sets
})

/** White space of the library's regular expressions, normalizers and added tokens. */
export const whiteSpace: CodePoints = parseCodePoints("9-d 20 85 a0 1680 2000-200a 2028-2029 202f 205f 3000")

const cached = new Map<string, CodePoints>([["White_Space", whiteSpace]])

/** Property as in `\p{…}`: a general category ("Lu"), a group of them ("L") or White_Space; undefined for others. */
export function property(name: string): CodePoints | undefined {
  const known = categories().get(name) ?? cached.get(name)
  if (known || !/^[LMNPSZC]$/.test(name)) return known
  const set = union(...categoryNames.filter((category) => category[0] === name).map((part) => categories().get(part)!))
  cached.set(name, set)
  return set
}

/** Ranges of code points that may have a category, with their code units per character; the other planes are empty or private. */
const scanned: readonly (readonly [first: number, end: number, units: number])[] = [
  [0, 0xd800, 1],
  [0xe000, 0x10000, 1],
  [0x10000, 0x40000, 2],
  [0xe0000, 0xf0000, 2],
]

/** Texts of the ranges, each with all of its characters in order. */
const scannedTexts = lazy(() => scanned.map(([first, end]) => charactersOf(first, end)))

function charactersOf(first: number, end: number): string {
  const units = new Uint16Array((end - first) * (first < 0x10000 ? 1 : 2))
  let at = 0
  for (let codePoint = first; codePoint < end; codePoint++) {
    if (codePoint < 0x10000) units[at++] = codePoint
    else {
      units[at++] = 0xd800 + ((codePoint - 0x10000) >> 10)
      units[at++] = 0xdc00 + (codePoint & 0x3ff)
    }
  }
  return Buffer.from(units.buffer).toString("utf16le")
}

/** Property as defined by the JavaScript engine. */
function nativeProperty(name: string): CodePoints {
  const run = new RegExp(`\\p{${name}}+`, "gu")
  return scannedTexts().flatMap((text, at) => {
    const [first, , units] = scanned[at]!
    return Array.from(text.matchAll(run), ({ 0: found, index }) => {
      const start = first + index / units
      return [start, start + found.length / units]
    }).flat()
  })
}

const sources = new Map<string, string>([["White_Space", classSource(whiteSpace)]])

/**
 * Property for a class of a regular expression with flag v; undefined for unknown ones. The engine's property is used, without characters of
 * later Unicode versions, because a list of all characters would be slow.
 */
export function propertySource(name: string): string | undefined {
  const set = property(name)
  if (!set || sources.has(name)) return sources.get(name)
  const native = nativeProperty(name)
  const [missing, extra] = [difference(set, native), difference(native, set)]
  const source = `[[\\p{${name}}${rangeSource(missing)}]--${classSource(extra)}]`
  sources.set(name, source)
  return source
}

const letterLike = ["L", "M", "Nd", "Nl", "Pc"]
const circledLetters = parseCodePoints("24b6-24e9 1f130-1f149 1f150-1f169 1f170-1f189")

/** Class for `\w` of patterns. */
export function patternWordSource(): string {
  const properties = letterLike.map((name) => propertySource(name)!)
  return `[${properties.join("")}${rangeSource(circledLetters)}${rangeSource(parseCodePoints("b2-b3 b9 bc-be"))}]`
}
/** Word characters, which must not be adjacent to added tokens with `single_word`. */
export const wordCharacters: () => CodePoints = lazy(() =>
  union(...letterLike.map((name) => property(name)!), circledLetters, parseCodePoints("200c-200d")),
)

/** Characters at which the pre-tokenizer Digits splits. */
export const digits: () => CodePoints = lazy(() => union(property("N")!, parseCodePoints(laterNumbers)))

/** Characters at which the pre-tokenizer Punctuation splits. */
export const punctuation: () => CodePoints = lazy(() =>
  union(
    difference(property("P")!, parseCodePoints(laterPunctuation)),
    parseCodePoints(formerPunctuation),
    parseCodePoints("21-2f 3a-40 5b-60 7b-7e"),
  ),
)

/** Class of code points that the library's normalizers do not change, although newer Unicode versions do; for flag v. */
export function neverNormalized(): string {
  return `[${propertySource("Cn")}${rangeSource(parseCodePoints(laterNormalization))}]`
}
