import { editDistance } from "../util/edit-distance.ts"

/**
 * The key that was probably meant by `path`: the one whose last name is the fewest edits away, with one more for standing in
 * another group. undefined where nothing comes near.
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

/** Characters of what can be a misspelt name: the search takes time with each. */
const longestName = 200

/** The same among bare names. */
export function nearestName(name: string, names: readonly string[]): string | undefined {
  return nearestKey(
    [name],
    names.map((one) => [one]),
  )?.[0]
}

/** However words are joined. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, "")
}
