/** Tokens of a run. */
const run = 4

/**
 * How much of a text repeats: the share of its runs of four tokens (n - 3 of n tokens, overlapping) that stood in it before. 0 where
 * none did, near 1 for one token, or one sentence, again and again. 0 for fewer than four tokens.
 */
export function repetition(tokens: Int32Array): number {
  const runs = tokens.length - run + 1
  if (runs <= 0) return 0
  // A hash table of where each run first stood, at most half full; the runs themselves are compared.
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

/** FNV-1a over whole tokens, with a last mix, since the table takes the low bits. */
function hash(tokens: Int32Array, at: number): number {
  let value = 0x811c9dc5
  for (let i = at; i < at + run; i++) value = Math.imul(value ^ tokens[i]!, 0x01000193)
  return value ^ (value >>> 15)
}

function sameRun(tokens: Int32Array, one: number, other: number): boolean {
  for (let i = 0; i < run; i++) if (tokens[one + i] !== tokens[other + i]) return false
  return true
}
