// Files of recorded episodes taken apart and put together again, so that changes get past the checksums.
import zlib, { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib"

const begin = 8 // bytes
const end = Buffer.from("GIGPOEND")
const compressed = (plain) => brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } })

/** The summary's text, and blocks as they are when decompressed. */
export function partsOf(bytes) {
  const tail = bytes.length - end.length - 8
  const summary = brotliDecompressSync(bytes.subarray(tail - bytes.readUInt32LE(tail), tail))
  const { blocks } = JSON.parse(summary)
  return {
    begin: bytes.subarray(0, begin),
    summary,
    blocks: blocks.map(({ offset, bytes: length }) => {
      const written = bytes.subarray(offset, offset + length)
      return { written, plain: brotliDecompressSync(written) }
    }),
  }
}

/** The file of these parts. `place` is "summary", which then says itself where blocks are, or the number of the block that was changed. */
export function fileOf(parts, place, changed) {
  const blocks = parts.blocks.map((block, at) =>
    at === place ? { written: compressed(changed), plain: changed } : block,
  )
  let offset = begin
  const { blocks: before, ...rest } = JSON.parse(parts.summary)
  const about = blocks.map(({ written, plain }, at) => {
    const block = { offset, bytes: written.length, checksum: zlib.crc32(written), length: plain.length }
    offset += written.length
    return { ...before[at], ...block }
  })
  const summary = compressed(place === "summary" ? changed : JSON.stringify({ ...rest, blocks: about }))
  const numbers = Buffer.alloc(8)
  numbers.writeUInt32LE(summary.length, 0)
  numbers.writeUInt32LE(zlib.crc32(summary), 4)
  return Buffer.concat([parts.begin, ...blocks.map(({ written }) => written), summary, numbers, end])
}
