import { text } from "./arguments.ts"
import { fail } from "./errors.ts"
import { limited } from "./limits.ts"
import { isSpace, spaceClass, stripEnd, stripStart } from "./unicode.ts"
import type { Value } from "./values.ts"

const spaces = new RegExp(`[${spaceClass}]+`)

/** str.split; a negative limit means no limit. */
export function splitStart(self: string, separator: Value, limit: number): string[] {
  if (separator === null) return limited(splitSpaces(self, limit))
  const pieces = self.split(mark(separator))
  if (limit < 0 || pieces.length <= limit + 1) return limited(pieces)
  return limited([...pieces.slice(0, limit), pieces.slice(limit).join(text(separator))])
}

/** str.rsplit. */
export function splitEnd(self: string, separator: Value, limit: number): string[] {
  if (separator === null) return limited(limit < 0 ? splitSpaces(self, limit) : splitSpacesEnd(self, limit))
  const separated = mark(separator)
  const pieces: string[] = []
  let end = self.length
  while (limit < 0 || pieces.length < limit) {
    const at = end < separated.length ? -1 : self.lastIndexOf(separated, end - separated.length)
    if (at < 0) break
    pieces.push(self.slice(at + separated.length, end))
    end = at
  }
  return limited([self.slice(0, end), ...pieces.reverse()])
}

function mark(separator: Value): string {
  const separated = text(separator)
  return separated === "" ? fail("ValueError", "empty separator") : separated
}

function splitSpaces(self: string, limit: number): string[] {
  let left = stripStart(self)
  if (limit < 0) return left === "" ? [] : stripEnd(left).split(spaces)
  const pieces: string[] = []
  while (left !== "" && pieces.length < limit) {
    const at = left.search(spaces)
    pieces.push(at < 0 ? left : left.slice(0, at))
    left = at < 0 ? "" : stripStart(left.slice(at))
  }
  return left === "" ? pieces : [...pieces, left]
}

function splitSpacesEnd(self: string, limit: number): string[] {
  let left = stripEnd(self)
  const pieces: string[] = []
  while (left !== "" && pieces.length < limit) {
    let start = left.length
    while (start > 0 && !isSpace(left[start - 1] as string)) start--
    pieces.push(left.slice(start))
    left = stripEnd(left.slice(0, start))
  }
  pieces.reverse()
  return left === "" ? pieces : [left, ...pieces]
}
