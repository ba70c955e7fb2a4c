import { BackwardBits, malformed } from "./bits.ts"
import { readTable } from "./fse.ts"

/** Table of a Huffman code (RFC 8878, section 4.2), by the next `log` bits. */
export interface HuffmanTable {
  readonly log: number
  readonly symbols: Uint8Array
  readonly widths: Uint8Array
}

const mostLog = 11

/** Reads the description of a table. Returns the table and the bytes of the description. */
export function readHuffman(bytes: Uint8Array): { readonly table: HuffmanTable; readonly length: number } {
  const head = bytes[0]
  if (head === undefined) throw malformed()
  if (head < 128) {
    if (1 + head > bytes.length) throw malformed()
    return { table: tableOf(compressedWeights(bytes.subarray(1, 1 + head))), length: 1 + head }
  }
  const count = head - 127
  const length = 1 + ((count + 1) >> 1)
  if (length > bytes.length) throw malformed()
  const weights = Array.from({ length: count }, (_, i) => (bytes[1 + (i >> 1)]! >> (i % 2 === 0 ? 4 : 0)) & 15)
  return { table: tableOf(weights), length }
}

/** Decodes weights with two alternating states. When the bits are used up, the states give the last symbols. */
function compressedWeights(bytes: Uint8Array): number[] {
  const { table, length } = readTable(bytes, 6, 256)
  const bits = new BackwardBits(bytes.subarray(length))
  const states = [bits.take(table.log), bits.take(table.log)]
  const weights: number[] = []
  for (let turn = 0; weights.length < 255; turn = 1 - turn) {
    const state = states[turn]!
    weights.push(table.symbols[state]!)
    if (bits.left < table.widths[state]!) {
      weights.push(table.symbols[states[1 - turn]!]!)
      return weights
    }
    states[turn] = table.bases[state]! + bits.take(table.widths[state]!)
  }
  throw malformed()
}

/**
 * Builds a table.
 *
 * @param weights - weights of all symbols but the last, which follows from the others.
 */
function tableOf(weights: readonly number[]): HuffmanTable {
  const sum = weights.reduce((all, weight) => all + (weight > 0 ? 2 ** (weight - 1) : 0), 0)
  const log = 32 - Math.clz32(sum)
  const rest = (1 << log) - sum
  if (sum === 0 || log > mostLog || weights.length > 255 || (rest & (rest - 1)) !== 0) throw malformed()
  const all = [...weights, 32 - Math.clz32(rest)]
  const [symbols, widths] = [new Uint8Array(1 << log), new Uint8Array(1 << log)]
  let place = 0
  for (let weight = 1; weight <= log; weight++)
    for (const [symbol, own] of all.entries()) {
      if (own !== weight) continue
      const end = place + (1 << (weight - 1))
      symbols.fill(symbol, place, end)
      widths.fill(log + 1 - weight, place, end)
      place = end
    }
  if (place !== 1 << log) throw malformed()
  return { log, symbols, widths }
}

/** Fills `to` with the symbols of a stream. Throws `BAD_ARGUMENT` if the stream has fewer or more. */
export function readStream({ log, symbols, widths }: HuffmanTable, bytes: Uint8Array, to: Uint8Array): void {
  const bits = new BackwardBits(bytes)
  for (let i = 0; i < to.length; i++) {
    const next = bits.peek(log)
    to[i] = symbols[next]!
    bits.left -= widths[next]!
    if (bits.left < 0) throw malformed()
  }
  if (bits.left !== 0) throw malformed()
}
