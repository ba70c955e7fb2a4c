/**
 * Similarity of two texts by their sets of words, 0 to 100: `token_set_ratio` of rapidfuzz after `full_process`, by which WebShop scores
 * attributes and options.
 *
 * With s the common words and a, b the other words of each text (sorted, joined by spaces), the result is the largest similarity among the
 * texts `s a`, `s b` and s. The similarity of two texts is 2·LCS / (sum of their lengths), with LCS the length of their longest common
 * subsequence.
 */
export function tokenSetRatio(left: string, right: string): number {
  const [a, b] = [tokens(left), tokens(right)]
  if (a.size === 0 || b.size === 0) return 0
  const common = [...a].filter((token) => b.has(token)).sort()
  const onlyA = [...a].filter((token) => !b.has(token)).sort()
  const onlyB = [...b].filter((token) => !a.has(token)).sort()
  if (common.length > 0 && (onlyA.length === 0 || onlyB.length === 0)) return 100

  const shared = common.join(" ")
  const withA = [...common, ...onlyA].join(" ")
  const withB = [...common, ...onlyB].join(" ")
  const ratios = [likeness(withA, withB)]
  // s is a prefix of both texts, so their longest common subsequence with s is s.
  if (shared) for (const text of [withA, withB]) ratios.push((2 * shared.length) / (shared.length + text.length))
  return roundHalfEven(100 * Math.max(...ratios))
}

/** Rounds half to even, as Python's `round`. */
function roundHalfEven(value: number): number {
  const below = Math.floor(value)
  return value - below === 0.5 ? below + (below % 2) : Math.round(value)
}

function tokens(text: string): Set<string> {
  // Characters outside ASCII are removed, not replaced by spaces.
  const ascii = text.replace(/[^\0-\x7f]/g, "").toLowerCase()
  return new Set(ascii.split(/[^a-z0-9]+/).filter((token) => token !== ""))
}

function likeness(a: string, b: string): number {
  return (2 * longestCommonSubsequence(a, b)) / (a.length + b.length)
}

function longestCommonSubsequence(a: string, b: string): number {
  // best[j]: length for the part of `a` read so far and the first j characters of `b`.
  const best = new Uint32Array(b.length + 1)
  for (let i = 0; i < a.length; i++) {
    let diagonal = 0
    for (let j = 1; j <= b.length; j++) {
      const above = best[j]!
      best[j] = a[i] === b[j - 1] ? diagonal + 1 : Math.max(above, best[j - 1]!)
      diagonal = above
    }
  }
  return best[b.length]!
}
