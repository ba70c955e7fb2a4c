/**
 * Returns the merges of a SentencePiece BPE vocabulary, which stores scores instead. Any two tokens whose concatenation is a token may be
 * merged, the highest score first. Ties go to the longer left part, then the longer right part, as in transformers' conversion.
 *
 * @param scores - one for each token.
 * @param skipped - ids of tokens that are not pieces of text: control tokens, bytes, and tokens that are matched before merging.
 */
export function mergesOf(
  tokens: readonly string[],
  scores: readonly number[],
  skipped: ReadonlySet<number>,
): [string, string][] {
  const ids = new Map<string, number>()
  for (const [id, token] of tokens.entries()) if (!skipped.has(id)) ids.set(token, id)
  const merges: { left: string; right: string; score: number; lengths: readonly [number, number] }[] = []
  for (const [token, id] of ids) {
    const points = [...token]
    const found: {
      left: string
      right: string
      order: readonly [number, number]
      lengths: readonly [number, number]
    }[] = []
    let left = ""
    for (let at = 1; at < points.length; at++) {
      left += points[at - 1]
      const right = token.slice(left.length)
      const order = [ids.get(left), ids.get(right)]
      if (order[0] === undefined || order[1] === undefined) continue
      found.push({ left, right, order: [order[0], order[1]], lengths: [at, points.length - at] })
    }
    found.sort((a, b) => a.order[0] - b.order[0] || a.order[1] - b.order[1])
    for (const { order: _, ...merge } of found) merges.push({ ...merge, score: scores[id]! })
  }
  merges.sort((a, b) => b.score - a.score || b.lengths[0] - a.lengths[0] || b.lengths[1] - a.lengths[1])
  return merges.map(({ left, right }) => [left, right])
}
