import { atOnce, type Pieces } from "../util/pace.ts"

/** JSON text that is equal for equal values of JSON, whatever the order of object members. */
export function canonical(value: unknown): string {
  return atOnce(canonicalInPieces(value))
}

/** Members, or names to sort, between two possible pauses. */
const perPiece = 1024

/** `canonical` in short pieces of work. */
export function* canonicalInPieces(value: unknown): Pieces<string> {
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const names = Array.isArray(value) ? undefined : yield* sortedNames(value)
  const members = value as ArrayLike<unknown> & Readonly<Record<string, unknown>>
  const texts: string[] = []
  for (let at = 0, count = names?.length ?? members.length; at < count; at++) {
    if (at % perPiece === perPiece - 1) yield
    const name = names?.[at]
    const member = members[name ?? at]
    // Most members are plain values, which need no generator of their own.
    const isWhole = typeof member === "object" && member !== null
    const text = isWhole ? yield* canonicalInPieces(member) : JSON.stringify(member)
    if (name === undefined) texts.push(text ?? "null")
    else if (text !== undefined) texts.push(`${JSON.stringify(name)}:${text}`)
  }
  return names ? `{${texts.join()}}` : `[${texts.join()}]`
}

/** Names of an object's members: array indices by number, as JavaScript orders them, then the others by code units. */
function* sortedNames(value: object): Pieces<readonly string[]> {
  const names = Object.keys(value)
  const others = names.findIndex((name) => !/^(0|[1-9]\d{0,9})$/.test(name) || Number(name) > mostIndex)
  if (others < 0) return names
  let runs: string[][] = []
  for (let at = others; at < names.length; at += perPiece) {
    runs.push(names.slice(at, at + perPiece).sort())
    yield
  }
  while (runs.length > 1) {
    const merged: string[][] = []
    for (let at = 0; at < runs.length; at += 2) merged.push(yield* merge(runs[at]!, runs[at + 1] ?? []))
    runs = merged
  }
  return [...names.slice(0, others), ...(runs[0] ?? [])]
}

/** Maximum array index in JavaScript. */
const mostIndex = 2 ** 32 - 2

/** Merges two sorted lists. */
function* merge(one: readonly string[], other: readonly string[]): Pieces<string[]> {
  const merged: string[] = []
  let [a, b] = [0, 0]
  while (a < one.length && b < other.length) {
    merged.push(one[a]! <= other[b]! ? one[a++]! : other[b++]!)
    if (merged.length % perPiece === 0) yield
  }
  return merged.concat(one.slice(a), other.slice(b))
}
