import { type FileHandle, open } from "node:fs/promises"
import { promisify } from "node:util"
import { brotliCompress, brotliDecompress, constants, crc32 } from "node:zlib"
import { GigpoError } from "../../errors.ts"
import { replaceFile } from "../../files/atomic-file.ts"
import { io } from "../../files/io-error.ts"
import type { EpisodePage } from "../data/source.ts"

// The episodes of one iteration, in one file that nothing else is needed to read (numbers are little endian):
//
//   "GIGPOEP1"     what it is, with the format's version
//   blocks         a few episodes each, compressed by Brotli, one after the other; a group may go on in the next
//   summary        JSON, compressed by Brotli: a short account of every episode, and where the blocks lie
//   end            uint32 bytes of the summary, uint32 its CRC-32, "GIGPOEND"
//
// A block, decompressed, is the parts that `encode.ts` makes, of a few episodes each: a header and arrays of numbers (`packed.ts`). The
// summary stands last because the file is written as the blocks come, so that little has to be held; it is found from the end.

const begin = Buffer.from("GIGPOEP1")
const end = Buffer.from("GIGPOEND")
const endLength = 8 + end.length
/** Most summaries are shorter, and so are read at once. */
const usualSummary = 32 * 1024
/** Decompressed: of a million episodes. What claims to be more is no summary. */
const longestSummary = 256 * 1024 * 1024

const compress = promisify(brotliCompress)
const decompress = promisify(brotliDecompress)
const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_LGWIN, BROTLI_PARAM_SIZE_HINT } = constants

/** The episodes of an iteration in short: columns [episodes], by group and member, as `EpisodePage` has them. */
export interface IterationSummary
  extends Pick<
    EpisodePage,
    "group" | "member" | "task" | "outcome" | "success" | "return" | "steps" | "tokens" | "tasks"
  > {
  readonly iteration: number
  /** Of all that was recorded: another one where the iteration was played anew. */
  readonly checksum: number
}

export interface Block {
  readonly offset: number
  /** Of the file. */
  readonly bytes: number
  /** CRC-32 of these. */
  readonly checksum: number
  /** Bytes when it is decompressed. */
  readonly length: number
  /** Of which it has episodes, in their order. */
  readonly groups: readonly number[]
}

type Columns = Omit<IterationSummary, "checksum">
type Written = Columns & { readonly blocks: readonly Block[] }

/** Some parts, and the groups that they are of. */
export interface PlainBlock {
  readonly parts: readonly Buffer[]
  readonly groups: readonly number[]
}

/** Writes the file whole or not at all. */
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
      const bytes = await compressed(plain)
      await file.writeFile(bytes)
      blocks.push({ offset, bytes: bytes.length, checksum: crc32(bytes), length: plain.length, groups })
      offset += bytes.length
    }
    const bytes = await compressed(Buffer.from(JSON.stringify({ ...summary, blocks } satisfies Written)))
    const numbers = Buffer.alloc(8)
    numbers.writeUInt32LE(bytes.length, 0)
    numbers.writeUInt32LE(crc32(bytes), 4)
    await file.writeFile(Buffer.concat([bytes, numbers, end]))
  })
}

/**
 * On the thread pool. What repeats is found at a low quality, too, and in a window of 1 MiB, which holds a whole block: more would take
 * more memory and time to make files a twentieth smaller.
 */
async function compressed(plain: Buffer): Promise<Buffer> {
  const params = { [BROTLI_PARAM_QUALITY]: 2, [BROTLI_PARAM_LGWIN]: 20, [BROTLI_PARAM_SIZE_HINT]: plain.length }
  return await compress(plain, { params })
}

/** What `read` makes of the file at `path`; undefined where it is not there. Faults name it. */
export async function withEpisodesFile<T>(
  path: string,
  read: (file: FileHandle) => Promise<T>,
): Promise<T | undefined> {
  let file: FileHandle
  try {
    file = await open(path)
  } catch (cause) {
    // It may have been removed since it was listed: another run began, or only the newest are kept.
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
      `${path} cannot be read (${reason}): it was cut short or changed. Remove it; the episodes of other iterations stay readable.`,
      { cause },
    )
  } finally {
    await file.close()
  }
}

export async function readSummary(
  file: FileHandle,
  path: string,
): Promise<{ readonly summary: IterationSummary; readonly blocks: readonly Block[] }> {
  const { size } = await file.stat()
  const first = await bytesAt(file, 0, begin.length)
  const version = begin.length - 1
  if (!first.subarray(0, version).equals(begin.subarray(0, version))) throw new Error("it holds no episodes")
  if (!first.equals(begin))
    throw new GigpoError(
      "RUN_CORRUPT",
      `${path} was written by another version of gigpo: read it with that, or a newer one.`,
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
  if (crc32(bytes) !== checksum) throw new Error("the summary's checksum is wrong")
  const written = await decompress(bytes, { maxOutputLength: longestSummary })
  const { blocks, ...summary } = JSON.parse(written.toString()) as Written
  return { summary: { ...summary, checksum }, blocks }
}

export async function readBlock(file: FileHandle, { offset, bytes, checksum, length }: Block): Promise<Buffer> {
  const found = await bytesAt(file, offset, bytes)
  if (crc32(found) !== checksum) throw new Error(`the checksum of the bytes from ${offset} on is wrong`)
  return await decompress(found, { maxOutputLength: length })
}

async function bytesAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position)
  if (bytesRead < length) throw new Error("it ends too early")
  return buffer
}
