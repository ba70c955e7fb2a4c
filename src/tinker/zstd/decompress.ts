import { GigpoError } from "../../util/errors.ts"
import type { Pieces } from "../../util/pace.ts"
import { malformed } from "./bits.ts"
import type { HuffmanTable } from "./huffman.ts"
import { largestBlock, littleEndian, readLiterals } from "./literals.ts"
import { eachSequence, type Remembered, remembersNothing } from "./sequences.ts"

/** Maximum number of blocks and frames; each may have separate tables. Encoders write blocks of 128 KiB or somewhat smaller. */
const mostBlocks = 8192

/**
 * Decompresses untrusted zstd (RFC 8878), one block per piece of work. Memory grows with the output, not with declared sizes, and
 * time is linear in input and output. Checksums are not verified.
 *
 * @param most - maximum bytes of the output
 * @throws GigpoError `BAD_ARGUMENT` for data that is not zstd or needs a dictionary; `TooMuch` for a larger output or too many blocks
 */
export function* decompress(bytes: Uint8Array, most: number): Pieces<Uint8Array> {
  const output = new Output(most)
  let blocks = 0
  for (let at = 0; at < bytes.length; ) {
    const magic = littleEndian(bytes, at, 4)
    if (++blocks > mostBlocks) throw tooLong(`${mostBlocks} blocks`)
    yield
    if (Math.floor(magic / 16) === 0x184d2a5) {
      at += 8 + littleEndian(bytes, at + 4, 4)
      if (at > bytes.length) throw malformed()
      continue
    }
    if (magic !== 0xfd2fb528) throw malformed()
    const frame = readHeader(bytes, at + 4)
    at = frame.end
    output.beginFrame()
    const tables: FrameTables = { huffman: undefined, remembered: remembersNothing() }
    for (let last = false; !last; ) {
      if (++blocks > mostBlocks) throw tooLong(`${mostBlocks} blocks`)
      yield
      const header = littleEndian(bytes, at, 3)
      last = header % 2 === 1
      const [kind, size] = [(header >> 1) & 3, header >> 3]
      const end = at + 3 + (kind === 1 ? 1 : size)
      if (size > largestBlock || end > bytes.length) throw malformed()
      const block = bytes.subarray(at + 3, end)
      if (kind === 0) output.add(block, 0, block.length)
      else if (kind === 1) output.fill(block[0]!, size)
      else if (kind === 2) readBlock(block, tables, output)
      else throw malformed()
      at = end
    }
    if (frame.size !== undefined && frame.size !== output.ofFrame) throw malformed()
    at += frame.checksum ? 4 : 0
    if (at > bytes.length) throw malformed()
  }
  return output.bytes()
}

interface FrameTables {
  huffman: HuffmanTable | undefined
  readonly remembered: Remembered
}

function readHeader(bytes: Uint8Array, at: number) {
  const flags = littleEndian(bytes, at, 1)
  if ((flags & 8) !== 0) throw malformed()
  const single = (flags & 32) !== 0
  const dictionary = [0, 1, 2, 4][flags & 3]!
  const width = [single ? 1 : 0, 2, 4, 8][flags >> 6]!
  const place = at + 1 + (single ? 0 : 1) // skips the window size, which is not needed since all output is kept
  if (littleEndian(bytes, place, dictionary) !== 0)
    throw new GigpoError(
      "BAD_ARGUMENT",
      "The zstd data needs a dictionary, which is not supported; compress it without one.",
    )
  const size = width === 0 ? undefined : littleEndian(bytes, place + dictionary, width) + (width === 2 ? 256 : 0)
  const end = place + dictionary + width
  if (end > bytes.length) throw malformed()
  return { size, end, checksum: (flags & 4) !== 0 }
}

function readBlock(block: Uint8Array, tables: FrameTables, output: Output): void {
  const { bytes: literals, length, table } = readLiterals(block, tables.huffman)
  tables.huffman = table
  const most = output.length + largestBlock
  let used = 0
  eachSequence(block.subarray(length), tables.remembered, (count, match, offset) => {
    if (count > literals.length - used || output.length + count + match > most) throw malformed()
    output.add(literals, used, count)
    used += count
    output.repeat(offset, match)
  })
  output.add(literals, used, literals.length - used)
  if (output.length > most) throw malformed()
}

/** Maximum bytes that are copied faster in a loop than by a call. */
const shortCopy = 64

/** Output buffer that grows with its contents. */
class Output {
  length = 0
  #frame = 0
  #buffer = new Uint8Array(65_536)
  readonly #most: number

  constructor(most: number) {
    this.#most = most
  }

  /** Bytes since the start of the frame, the range of its offsets. */
  get ofFrame(): number {
    return this.length - this.#frame
  }

  beginFrame(): void {
    this.#frame = this.length
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.length)
  }

  add(bytes: Uint8Array, from: number, count: number): void {
    this.#reserve(count)
    if (count > shortCopy) this.#buffer.set(bytes.subarray(from, from + count), this.length)
    else for (let i = 0; i < count; i++) this.#buffer[this.length + i] = bytes[from + i]!
    this.length += count
  }

  fill(byte: number, count: number): void {
    this.#reserve(count)
    this.#buffer.fill(byte, this.length, this.length + count)
    this.length += count
  }

  /** Appends a copy of bytes from `offset` bytes before; the ranges may overlap. */
  repeat(offset: number, count: number): void {
    if (offset < 1 || offset > this.ofFrame) throw malformed()
    this.#reserve(count)
    const end = this.length + count
    if (offset >= count && count > shortCopy)
      this.#buffer.copyWithin(this.length, this.length - offset, this.length - offset + count)
    else for (let i = this.length; i < end; i++) this.#buffer[i] = this.#buffer[i - offset]!
    this.length = end
  }

  #reserve(count: number): void {
    const needed = this.length + count
    if (needed > this.#most) throw tooLong(`${this.#most} bytes`)
    if (needed <= this.#buffer.length) return
    const larger = new Uint8Array(Math.min(Math.max(2 * this.#buffer.length, needed), Math.max(this.#most, 65_536)))
    larger.set(this.#buffer.subarray(0, this.length))
    this.#buffer = larger
  }
}

/** Error for output above the limit. */
export class TooMuch extends GigpoError {}

const tooLong = (what: string) =>
  new TooMuch("BAD_ARGUMENT", `The compressed data has more than ${what}; send smaller requests.`)
