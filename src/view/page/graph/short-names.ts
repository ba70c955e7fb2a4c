import { visible } from "../../../util/visible.ts"

/** Number of characters of a text from which a name is made. */
const looked = 2000

/**
 * Short names that distinguish texts of one kind: the common prefix of whole words is omitted. Escaped for display and cut to `longest`
 * characters.
 */
export function shortNames(texts: readonly string[], longest: number): string[] {
  const begun = texts.map((text) => text.slice(0, looked).replaceAll(/\s+/g, " ").trim())
  const different = new Set(begun)
  let shared = 0
  if (different.size > 1) {
    const [first, ...others] = [...different] as [string, ...string[]]
    const isShared = (at: number) => at < first.length && others.every((text) => text[at] === first[at])
    while (isShared(shared)) shared++
    shared = first.lastIndexOf(" ", shared - 1) + 1
  }
  return begun.map((text) => cut(visible(text.slice(shared) || text), longest))
}

/** Text in one line, escaped for display and cut to `longest` characters. */
export function oneLine(text: string, longest: number): string {
  return cut(visible(text.slice(0, looked).replaceAll(/\s+/g, " ").trim()), longest)
}

function cut(text: string, longest: number): string {
  const characters = [...text]
  return characters.length > longest ? `${characters.slice(0, longest - 1).join("")}…` : text
}
