import type { FileHandle } from "node:fs/promises"
import { promisify } from "node:util"
import zlib, { brotliCompress, brotliDecompress, constants } from "node:zlib"
import { replaceFile } from "../../files/atomic-file.ts"
import { insideParent } from "../../files/inside.ts"
import { io } from "../../files/io-error.ts"
import { openRegular } from "../../files/regular-file.ts"
import { GigpoError } from "../../util/errors.ts"
import type { EpisodePage, ProblemCount } from "../data/source.ts"
import { checkSummary } from "./check-summary.ts"
import { parseLimited } from "./shape.ts"

// Episodes of one iteration in one self-contained file (numbers are little endian):
//
//   "GIGPOEP1"     magic number, with the format's version
//   blocks         a few episodes each, compressed by Brotli, one after the other; a group may continue in the next
//   summary        JSON, compressed by Brotli: a summary of every episode, and the positions of the blocks
//   end            uint32 bytes of the summary, uint32 its CRC-32, "GIGPOEND"
//
// A block, decompressed, is the parts that `encode.ts` makes, of a few episodes each: a header and arrays of numbers (`packed.ts`). The
// summary is last because blocks are written as they are made, to save memory; it is located from the end.

const begin = Buffer.from("GIGPOEP1")
const end = Buffer.from("GIGPOEND")
const endLength = 8 + end.length
/** Bytes of the first read from the end, enough for most summaries. */
const usualSummary = 32 * 1024

// Limits of decompressed bytes, against decompression bombs: the recorder writes a few MB at most, and text and numbers are compressed to
// a few tenths.

/** Limit of a summary, about 500,000 episodes. */
const longestSummary = 32 * 2 ** 20
/** Limit of a summary: a constant, and an amount per byte of the file. */
const [usualSummaryText, mostSummaryText] = [2 ** 16, 256]
/** Limit of a block, an episode of millions of tokens. */
export const longestBlock = 64 * 2 ** 20
/** Limit of all blocks together: a constant, and an amount per byte of the file. */
const [usualBlocks, mostBlocks] = [longestBlock, 1024]

const compress = promisify(brotliCompress)
const decompress = promisify(brotliDecompress)
const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_LGWIN, BROTLI_PARAM_SIZE_HINT } = constants

/** Summary of the recorded episodes of an iteration: columns [episodes], ordered by group and member. */
export interface RecordedIteration
  extends Pick<
    EpisodePage,
    "group" | "member" | "task" | "outcome" | "success" | "return" | "steps" | "tokens" | "tasks"
  > {
  /** Number of the iteration, from 1. */
  readonly iteration: number
  /** Numbers of problems of each episode, [episodes]. Absent in recordings of earlier versions. */
  readonly problems?: Readonly<Record<ProblemCount, readonly number[]>>
  /** Checksum of the recording; changes if the iteration is repeated. */
  readonly checksum: number
}

export interface Block {
  readonly offset: number
  /** Compressed size in bytes. */
  readonly bytes: number
  /** CRC-32 of the compressed bytes. */
  readonly checksum: number
  /** Decompressed size in bytes. */
  readonly length: number
  /** Groups that have episodes in the block, in order. */
  readonly groups: readonly number[]
}

type Columns = Omit<RecordedIteration, "checksum">
export type Written = Columns & { readonly blocks: readonly Block[] }

/** Parts of a block with their groups. */
export interface PlainBlock {
  readonly parts: readonly Buffer[]
  readonly groups: readonly number[]
}

/** Writes the file atomically. */
export async function writeEpisodesFile(
  path: string,
  summary: Columns,
  plainBlocks: AsyncIterable<PlainBlock>,
): Promise<void> {
  await replaceFile(path, async (file) => {
    await file.writeFile(begin)
    let offset = begin.length
    const blocks: Block[] = []
    for await (const { parts, groups } of plainBlocks) {
      const plain = Buffer.concat(parts)
      if (plain.length > longestBlock)
        throw new GigpoError("BAD_DATA", `An episode takes more than ${longestBlock} bytes.`)
      const bytes = await compressed(plain)
      await file.writeFile(bytes)
      blocks.push({ offset, bytes: bytes.length, checksum: zlib.crc32(bytes), length: plain.length, groups })
      offset += bytes.length
    }
    const bytes = await compressed(Buffer.from(JSON.stringify({ ...summary, blocks } satisfies Written)))
    const numbers = Buffer.alloc(8)
    numbers.writeUInt32LE(bytes.length, 0)
    numbers.writeUInt32LE(zlib.crc32(bytes), 4)
    await file.writeFile(Buffer.concat([bytes, numbers, end]))
  })
}

/**
 * Compresses on the thread pool, with low quality and a window of 1 MiB, which contains a whole block. Higher settings would take more memory
 * and time for 5 % smaller files.
 */
async function compressed(plain: Buffer): Promise<Buffer> {
  const params = { [BROTLI_PARAM_QUALITY]: 2, [BROTLI_PARAM_LGWIN]: 20, [BROTLI_PARAM_SIZE_HINT]: plain.length }
  return await compress(plain, { params })
}

/** Opens the file at `path` for `read`; undefined if it does not exist. Errors contain the path. */
export async function withEpisodesFile<T>(
  path: string,
  read: (file: FileHandle) => Promise<T>,
): Promise<T | undefined> {
  let file: FileHandle
  try {
    file = await openRegular(await insideParent(path))
  } catch (cause) {
    // The file may have been removed since it was listed: another run started, or only the newest files are kept.
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined
    return await io("read", path, Promise.reject(cause))
  }
  try {
    return await read(file)
  } catch (cause) {
    if (GigpoError.is(cause)) throw cause
    const reason = cause instanceof Error ? cause.message : cause
    throw new GigpoError(
      "RUN_CORRUPT",
      `${path} cannot be read (${reason}): it was truncated or changed. Remove it; the episodes of other iterations stay readable.`,
      { cause },
    )
  } finally {
    await file.close()
  }
}

export async function readSummary(
  file: FileHandle,
  path: string,
  iteration: number,
): Promise<{ readonly summary: RecordedIteration; readonly blocks: readonly Block[] }> {
  const { size } = await file.stat()
  const first = await bytesAt(file, 0, begin.length)
  const version = begin.length - 1
  if (!first.subarray(0, version).equals(begin.subarray(0, version))) throw new Error("it is not an episodes file")
  if (!first.equals(begin))
    throw new GigpoError(
      "RUN_CORRUPT",
      `${path} was written by another version of gigpo: read it with that version, or a newer one.`,
    )
  const tail = await bytesAt(
    file,
    Math.max(size - usualSummary - endLength, 0),
    Math.min(usualSummary + endLength, size),
  )
  const last = tail.subarray(-endLength)
  if (!last.subarray(8).equals(end)) throw new Error("its end is missing")
  const length = last.readUInt32LE(0)
  const at = size - endLength - length
  if (at < begin.length) throw new Error("its summary is missing")
  const whole = length + endLength <= tail.length
  const bytes = whole ? tail.subarray(-endLength - length, -endLength) : await bytesAt(file, at, length)
  const checksum = last.readUInt32LE(4)
  if (zlib.crc32(bytes) !== checksum) throw new Error("the summary's checksum is wrong")
  const maxOutputLength = Math.min(longestSummary, usualSummaryText + mostSummaryText * size)
  const written = await decompress(bytes, { maxOutputLength })
  const { blocks, ...summary } = checkSummary(parseLimited(written.toString()), iteration)
  checkBlocks(blocks, at, usualBlocks + mostBlocks * size)
  return { summary: { ...summary, checksum }, blocks }
}

/** Checks that blocks are contiguous up to the summary and within the limits. Throws if not. */
function checkBlocks(blocks: readonly Block[], to: number, most: number): void {
  let [offset, length] = [begin.length, 0]
  for (const block of blocks) {
    if (block.offset !== offset || block.length > longestBlock) throw new Error("its blocks are wrong")
    offset += block.bytes
    length += block.length
  }
  if (offset !== to) throw new Error("its blocks do not cover it")
  if (length > most) throw new Error("its blocks are too long for its size")
}

export async function readBlock(file: FileHandle, { offset, bytes, checksum, length }: Block): Promise<Buffer> {
  const found = await bytesAt(file, offset, bytes)
  if (zlib.crc32(found) !== checksum) throw new Error(`the checksum of the bytes from ${offset} on is wrong`)
  const plain = await decompress(found, { maxOutputLength: Math.max(length, 1) })
  if (plain.length !== length) throw new Error(`the length of the bytes from ${offset} on is wrong`)
  return plain
}

async function bytesAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position)
  if (bytesRead < length) throw new Error("it ends too early")
  return buffer
}
