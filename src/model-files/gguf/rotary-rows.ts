/** Numbers of heads, into which the rows of the query and key projections are divided. */
export interface Heads {
  readonly heads: number
  readonly keyValueHeads: number
}

/** Returns the number of heads in a tensor with a Hugging Face name; undefined for tensors other than query and key projections. */
export function rotaryHeads(name: string, { heads, keyValueHeads }: Heads): number | undefined {
  if (name.endsWith(".q_proj.weight")) return heads
  return name.endsWith(".k_proj.weight") ? keyValueHeads : undefined
}

/** Rows of one head in a buffer, from byte `at` on. */
export interface HeadRows {
  readonly at: number
  readonly rows: number
  readonly rowBytes: number
}

/** Copies the rows of a head from interleaved pairs (0, n/2, 1, n/2 + 1, …), as GGUF stores them, to Hugging Face's halves (0, 1, …). */
export function toHalves(from: Uint8Array, to: Uint8Array, head: HeadRows): void {
  eachPair(head, (half, pair) => to.set(from.subarray(pair, pair + head.rowBytes), half))
}

/** Copies the rows of a head from Hugging Face's halves to interleaved pairs. */
export function toPairs(from: Uint8Array, to: Uint8Array, head: HeadRows): void {
  eachPair(head, (half, pair) => to.set(from.subarray(half, half + head.rowBytes), pair))
}

/** Calls `call` with the byte position of each row in both orders. */
function eachPair({ at, rows, rowBytes }: HeadRows, call: (half: number, pair: number) => void): void {
  for (let row = 0; row < rows; row++)
    call(at + row * rowBytes, at + (row < rows / 2 ? 2 * row : 2 * row - rows + 1) * rowBytes)
}
