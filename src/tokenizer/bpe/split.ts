import { atOnce, type Pieces } from "../../util/pace.ts"
import type { Pattern } from "./pattern.ts"

/** Treatment of the matches at which a text is split. */
export const behaviors = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"] as const
export type Behavior = (typeof behaviors)[number]

interface Stretch {
  readonly from: number
  readonly end: number
  readonly match: boolean
}

export type Split = (text: string) => Pieces<readonly string[]>

/** Maximum length of texts that are split at once, which is faster, in UTF-16 units. */
const short = 65_536
/** Number of matches in longer texts between two possible pauses. */
const matchesPerPiece = 256

/** Makes a function that splits texts at the matches of a pattern, or between the matches if `invert`. No piece is empty. */
export function createSplit(pattern: Pattern, behavior: Behavior, invert: boolean): Split {
  const { regExp } = pattern
  const sticky = new RegExp(regExp.source, regExp.flags.replace("g", "y"))
  return function* (text) {
    if (behavior === "Isolated") {
      // Most patterns match the whole text, and finding all matches at once is faster.
      const matches = text.length > short ? undefined : pattern.limited(() => text.match(regExp) ?? [])
      if (matches && joinedLength(matches) === text.length) return matches
      if (pattern.linear) return yield* isolate(regExp, sticky, text)
    }
    const found = findStretches(regExp, text, invert)
    const stretches = pattern.linear ? yield* found : pattern.limited(() => atOnce(found))
    const kept = behavior === "Removed" ? stretches.filter(({ match }) => !match) : merge(stretches, behavior)
    return kept.map(({ from, end }) => text.slice(from, end))
  }
}

function joinedLength(texts: readonly string[]): number {
  let length = 0
  for (const text of texts) length += text.length
  return length
}

/** Matches and the texts between them. */
function* isolate(global: RegExp, sticky: RegExp, text: string): Pieces<string[]> {
  const pieces: string[] = []
  for (let at = 0; at < text.length; ) {
    sticky.lastIndex = at
    let end = text.length
    if (sticky.test(text)) end = sticky.lastIndex
    else {
      global.lastIndex = at
      const next = global.exec(text)
      if (next) end = next.index
    }
    pieces.push(text.slice(at, end))
    at = end
    if (pieces.length % matchesPerPiece === 0) yield
  }
  return pieces
}

function* findStretches(pattern: RegExp, text: string, invert: boolean): Pieces<Stretch[]> {
  const stretches: Stretch[] = []
  let at = 0
  for (const { index, 0: found } of text.matchAll(pattern)) {
    if (index > at) stretches.push({ from: at, end: index, match: invert })
    at = index + found.length
    stretches.push({ from: index, end: at, match: !invert })
    if (stretches.length % matchesPerPiece < 2) yield
  }
  if (at < text.length) stretches.push({ from: at, end: text.length, match: invert })
  return stretches
}

function merge(stretches: Stretch[], behavior: Behavior): Stretch[] {
  if (behavior === "Isolated") return stretches
  const backwards = behavior === "MergedWithNext"
  const merged: Stretch[] = []
  let before = false
  for (const stretch of backwards ? stretches.reverse() : stretches) {
    const joins = behavior === "Contiguous" ? stretch.match === before : stretch.match && !before
    const last = joins ? merged.pop() : undefined
    const [from, end] = [last && !backwards ? last.from : stretch.from, last && backwards ? last.end : stretch.end]
    merged.push({ from, end, match: stretch.match })
    before = stretch.match
  }
  return backwards ? merged.reverse() : merged
}
