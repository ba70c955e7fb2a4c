import type { Pieces } from "../util/pace.ts"

/** Matches between two possible pauses. */
const matchesPerPiece = 512

/** `text.replace(pattern, replace)` in short pieces of work. The pattern has the flag g. */
export function* replacedInPieces(text: string, pattern: RegExp, replace: (part: string) => string): Pieces<string> {
  const parts: string[] = []
  let [kept, matches] = [0, 0]
  for (const { 0: part, index } of text.matchAll(pattern)) {
    if (++matches % matchesPerPiece === 0) yield
    const replaced = replace(part)
    if (replaced === part) continue
    parts.push(text.slice(kept, index), replaced)
    kept = index + part.length
  }
  return parts.length === 0 ? text : parts.join("") + text.slice(kept)
}
