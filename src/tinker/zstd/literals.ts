import { malformed } from "./bits.ts"
import { type HuffmanTable, readHuffman, readStream } from "./huffman.ts"

/** Maximum bytes of a block. */
export const largestBlock = 131_072

/** Literals of a block. */
export interface Literals {
  readonly bytes: Uint8Array
  /** Bytes of the section in the block. */
  readonly length: number
  /** Table for later blocks without a table. */
  readonly table: HuffmanTable | undefined
}

/** Reads the literals at the start of a block. Throws `BAD_ARGUMENT`. */
export function readLiterals(block: Uint8Array, before: HuffmanTable | undefined): Literals {
  const [head, format] = [block[0] ?? 0, ((block[0] ?? 0) >> 2) & 3]
  const kind = head & 3
  if (kind < 2) {
    const bytes = format === 1 ? 2 : format === 3 ? 3 : 1
    const size = littleEndian(block, 0, bytes) >>> (bytes === 1 ? 3 : 4)
    const length = bytes + (kind === 0 ? size : 1)
    if (size > largestBlock || length > block.length) throw malformed()
    const found = kind === 0 ? block.subarray(bytes, length) : new Uint8Array(size).fill(block[bytes]!)
    return { bytes: found, length, table: before }
  }
  const header = format < 2 ? 3 : format + 2
  const bits = format < 2 ? 10 : 4 * format + 6
  const sizes = littleEndian(block, 0, header)
  const size = Math.floor(sizes / 16) % 2 ** bits
  const length = header + (Math.floor(sizes / 2 ** (4 + bits)) % 2 ** bits)
  if (size > largestBlock || length > block.length) throw malformed()
  const section = block.subarray(header, length)
  const described = kind === 2 ? readHuffman(section) : { table: before, length: 0 }
  if (!described.table) throw malformed()
  const bytes = new Uint8Array(size)
  const streams = section.subarray(described.length)
  if (format === 0) readStream(described.table, streams, bytes)
  else readFourStreams(described.table, streams, bytes)
  return { bytes, length, table: described.table }
}

/** Reads four streams, which follow the lengths of the first three. */
function readFourStreams(table: HuffmanTable, streams: Uint8Array, to: Uint8Array): void {
  const each = (to.length + 3) >> 2
  let from = 6
  for (let i = 0; i < 4; i++) {
    const end = i < 3 ? from + littleEndian(streams, 2 * i, 2) : streams.length
    if (end > streams.length || from > end || 3 * each > to.length) throw malformed()
    readStream(table, streams.subarray(from, end), to.subarray(i * each, i < 3 ? (i + 1) * each : to.length))
    from = end
  }
}

/** Reads an unsigned little-endian integer. Throws `BAD_ARGUMENT` beyond the end. */
export function littleEndian(bytes: Uint8Array, at: number, count: number): number {
  if (at + count > bytes.length) throw malformed()
  let value = 0
  for (let i = count - 1; i >= 0; i--) value = value * 256 + bytes[at + i]!
  return value
}
