/** Length of an n-gram in tokens. */
const run = 4

/**
 * Returns the share of the 4-grams of a text (n - 3 of n tokens) that occur earlier in the text. 0 without repetition and for fewer than
 * four tokens; near 1 for a token or a sentence that is repeated over and over.
 */
export function repetition(tokens: Int32Array): number {
  const runs = tokens.length - run + 1
  if (runs <= 0) return 0
  // Hash table of the first position of each 4-gram, at most half full. Collisions are resolved by comparing the tokens.
  const size = 2 ** Math.ceil(Math.log2(2 * runs))
  const first = new Int32Array(size).fill(-1)
  let repeated = 0
  for (let at = 0; at < runs; at++) {
    let slot = hash(tokens, at) & (size - 1)
    while (first[slot]! >= 0 && !sameRun(tokens, first[slot]!, at)) slot = (slot + 1) & (size - 1)
    if (first[slot]! >= 0) repeated++
    else first[slot] = at
  }
  return repeated / runs
}

/** FNV-1a hash over whole tokens, with a final mix, since the table uses the low bits. */
function hash(tokens: Int32Array, at: number): number {
  let value = 0x811c9dc5
  for (let i = at; i < at + run; i++) value = Math.imul(value ^ tokens[i]!, 0x01000193)
  return value ^ (value >>> 15)
}

function sameRun(tokens: Int32Array, one: number, other: number): boolean {
  for (let i = 0; i < run; i++) if (tokens[one + i] !== tokens[other + i]) return false
  return true
}
