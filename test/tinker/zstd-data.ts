/** What the fixtures of zstd decompress to. */
export const zstdData: Readonly<Record<string, () => Uint8Array>> = {
  empty: () => new Uint8Array(),
  zeros: () => new Uint8Array(300_000),
  words: () => {
    const words = ["the", "agent", "moves", "a", "box", "to", "its", "goal", "and", "waits", "; ", "never", "turns"]
    const next = numbers(7)
    const text = Array.from({ length: 60_000 }, () => words[Math.floor(next() ** 2 * words.length)]).join(" ")
    return Buffer.from(text)
  },
  noise: () => {
    const next = numbers(3)
    return Uint8Array.from({ length: 2000 }, () => Math.floor(256 * next()))
  },
  // Few values, and no repetition: Huffman codes and hardly a copy.
  skewed: () => {
    const next = numbers(5)
    return Uint8Array.from({ length: 12_000 }, () => Math.floor(-3 * Math.log(1 - next())))
  },
  tokens: () => new Uint8Array(Int32Array.from({ length: 30_000 }, (_, i) => ((i % 700) * 7919) % 50_000).buffer),
}

/** From 0 to 1, always the same. */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return state / 2 ** 32
  }
}
