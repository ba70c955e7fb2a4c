/** Maximum length of a kind's name; longer texts are cut. */
const longestKind = 80

/**
 * Metric `success`, and the same value under the kind of the task, e.g. `success/pick_and_place_simple`. Metrics are averaged over the
 * episodes that have them, so the second is the success rate on tasks of that kind. Kinds may come from data: characters other than
 * letters, digits, `.`, `_` and `-` are replaced by `-`, and a kind without letters and digits is omitted.
 */
export function successMetrics(won: boolean, kind?: unknown): Record<string, number> {
  const success = won ? 1 : 0
  const name = String(kind ?? "")
    .slice(0, longestKind)
    .replace(/[^\p{L}\p{N}._-]+/gu, "-")
  return /[\p{L}\p{N}]/u.test(name) ? { success, [`success/${name}`]: success } : { success }
}
