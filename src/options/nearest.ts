import { editDistance } from "../util/edit-distance.ts"
import type { OptionFields } from "./table.ts"

/**
 * Returns the key that `path` probably is a misspelling of: the key whose last name has the smallest edit distance, with 1 added for a
 * different group. undefined if no key is close.
 */
export function nearestKey(
  path: readonly string[],
  keys: readonly (readonly string[])[],
): readonly string[] | undefined {
  const last = plain(path.at(-1) ?? "")
  if (last.length > longestName) return undefined
  let best: { key: readonly string[]; distance: number } | undefined
  for (const key of keys) {
    const elsewhere = key.slice(0, -1).join(".") === path.slice(0, -1).join(".") ? 0 : 1
    const distance = editDistance(last, plain(key.at(-1)!)) + elsewhere
    if (!best || distance < best.distance) best = { key, distance }
  }
  return best && best.distance <= Math.max(1, Math.ceil(last.length / 3)) ? best.key : undefined
}

/** Longest name in characters that is searched for: the search time grows with the length. */
const longestName = 200

/** Returns the name that `name` probably is a misspelling of. undefined if no name is close. */
export function nearestName(name: string, names: readonly string[]): string | undefined {
  return nearestKey(
    [name],
    names.map((one) => [one]),
  )?.[0]
}

/**
 * Returns the only option whose description contains every word of a name: "stepWeight" in "Weight ω of the step advantage". undefined for
 * a name of one word.
 */
export function describedBy(name: string, fields: OptionFields): string | undefined {
  if (name.length > longestName) return undefined
  const words = wordsOf(name.replaceAll(/(?=\p{Lu})/gu, " "))
  if (words.length < 2) return undefined
  const found = Object.keys(fields).filter((key) => {
    const said = new Set(wordsOf(fields[key]!.help))
    return words.every((word) => said.has(word))
  })
  return found.length === 1 ? found[0] : undefined
}

function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/\p{L}+/gu) ?? []
}

/** Name in lower case without hyphens and underscores, so that maxSteps, max_steps and max-steps are equal. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, "")
}
