/** Longer names would come from data that is no name of a kind. */
const longestKind = 80

/**
 * The metric `success`, and the same once more under the kind of the task, e.g. `success/pick_and_place_simple`: metrics are
 * averaged over the episodes that have them, so this is the success on tasks of the kind. Kinds may come from data:
 * whatever is no letter, digit, `.`, `_` or `-` becomes `-`, and what is left of blank ones is no kind.
 */
export function successMetrics(won: boolean, kind?: unknown): Record<string, number> {
  const success = won ? 1 : 0
  const name = String(kind ?? "")
    .slice(0, longestKind)
    .replace(/[^\p{L}\p{N}._-]+/gu, "-")
  return /[\p{L}\p{N}]/u.test(name) ? { success, [`success/${name}`]: success } : { success }
}
