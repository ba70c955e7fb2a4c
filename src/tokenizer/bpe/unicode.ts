import { lazy } from "../../util/lazy.ts"
import {
  type CodePoints,
  classSource,
  difference,
  intersection,
  parseCodePoints,
  rangeSource,
  union,
} from "./code-points.ts"
import {
  categoryNames,
  categoryRuns,
  changedSince14,
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

/** Code points that may have a category; the other planes are empty or private. */
const possible = parseCodePoints("0-d7ff e000-3ffff e0000-effff")

/** Comparison of the table with the Unicode version of the JavaScript engine. */
export interface Comparison {
  /** Code points that are taken to have the same category in both. */
  readonly same: CodePoints
  /** Ranges of the others, with all characters of each in order; no range has characters of both one and two code units. */
  readonly ranges: readonly { readonly first: number; readonly units: number; readonly text: string }[]
}

/**
 * Comparison with an engine of a Unicode version. To compare all code points takes 40 ms at the start of every process, so in versions up to 17
 * only those are compared that have changed since version 14. Other versions, and undefined, compare all.
 */
export function comparison(unicode: string | undefined): Comparison {
  const version = Number.parseInt(unicode ?? "", 10)
  const compared = version >= 14 && version <= 17 ? parseCodePoints(changedSince14) : possible
  const ranges = [parseCodePoints("0-ffff"), parseCodePoints("10000-10ffff")].flatMap((planes, more) => {
    const part = intersection(compared, planes)
    const [first, end] = [0, 1].map((which) => part.filter((_, index) => index % 2 === which)) as [number[], number[]]
    return first.map((from, index) => ({
      first: from,
      units: 1 + more,
      text: charactersOf(from, end[index]!, 1 + more),
    }))
  })
  return { same: difference(possible, compared), ranges }
}

function charactersOf(first: number, end: number, units: number): string {
  const codes = new Uint16Array((end - first) * units)
  let at = 0
  for (let codePoint = first; codePoint < end; codePoint++) {
    if (units === 1) codes[at++] = codePoint
    else {
      codes[at++] = 0xd800 + ((codePoint - 0x10000) >> 10)
      codes[at++] = 0xdc00 + (codePoint & 0x3ff)
    }
  }
  return Buffer.from(codes.buffer).toString("utf16le")
}

/** Property as defined by the JavaScript engine. */
function nativeProperty(name: string, set: CodePoints, { same, ranges }: Comparison): CodePoints {
  const run = new RegExp(`\\p{${name}}+`, "gu")
  const found = ranges.flatMap(({ first, units, text }) =>
    Array.from(text.matchAll(run), ({ 0: { length }, index }) => {
      const start = first + index / units
      return [start, start + length / units]
    }).flat(),
  )
  return union(intersection(set, same), found)
}

const sources = new Map<string, string>([["White_Space", classSource(whiteSpace)]])
const here = lazy(() => comparison(process.versions.unicode))

/**
 * Property for a class of a regular expression with flag v; undefined for unknown ones. The engine's property is used, without characters of
 * later Unicode versions, because a list of all characters would be slow.
 */
export function propertySource(name: string): string | undefined {
  if (!sources.has(name)) {
    const source = comparedSource(name, here())
    if (source === undefined) return undefined
    sources.set(name, source)
  }
  return sources.get(name)
}

/** Class of a property, from what the table and the engine say differently. */
export function comparedSource(name: string, compared: Comparison): string | undefined {
  const set = property(name)
  if (!set) return undefined
  const native = nativeProperty(name, set, compared)
  const [missing, extra] = [difference(set, native), difference(native, set)]
  return `[[\\p{${name}}${rangeSource(missing)}]--${classSource(extra)}]`
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
