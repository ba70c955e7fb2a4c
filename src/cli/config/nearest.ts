/**
 * The key that was probably meant by `path`: the one whose last name is the fewest edits away, with one more for standing in
 * another group. undefined where nothing comes near.
 */
export function nearestKey(
  path: readonly string[],
  keys: readonly (readonly string[])[],
): readonly string[] | undefined {
  const last = path.at(-1) ?? ""
  let best: { key: readonly string[]; distance: number } | undefined
  for (const key of keys) {
    const elsewhere = key.slice(0, -1).join(".") === path.slice(0, -1).join(".") ? 0 : 1
    const distance = editDistance(last.toLowerCase(), key.at(-1)!.toLowerCase()) + elsewhere
    if (!best || distance < best.distance) best = { key, distance }
  }
  return best && best.distance <= Math.max(1, Math.ceil(last.length / 3)) ? best.key : undefined
}

/** Levenshtein distance, one row of the table at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[b.length]!
}
