import { mkdir, readFile, writeFile } from "node:fs/promises"
import { dirname } from "node:path"
import { Readable } from "node:stream"
import zlib from "node:zlib"
import { episodesPath } from "../../../src/view/record/folder.ts"

// Episodes files with any content and right checksums: an attacker can compute these.

export type Json = Record<string, unknown>
export interface ForgedPart {
  about: Json
  arrays: Record<string, { type: string; values: number[] }>
}
/** Compressed bytes, and how many they become. */
export interface Packed {
  readonly packed: Buffer
  readonly length: number
}
export interface Forged {
  summary: Json & { blocks: Json[] }
  /** Decompressed. */
  blocks: Buffer[]
}

const types = { Uint8Array, Uint16Array, Int32Array, Float32Array, Float64Array }

export async function readForged(path: string): Promise<Forged> {
  const bytes = await readFile(path)
  const length = bytes.readUInt32LE(bytes.length - 16)
  const summary = JSON.parse(
    zlib.brotliDecompressSync(bytes.subarray(bytes.length - 16 - length, -16)).toString(),
  ) as Forged["summary"]
  const blocks = summary.blocks.map(({ offset, bytes: size }) =>
    zlib.brotliDecompressSync(bytes.subarray(offset as number, (offset as number) + (size as number))),
  )
  // Offsets, lengths and checksums are made anew.
  return { summary: { ...summary, blocks: summary.blocks.map(({ groups }) => ({ groups })) }, blocks }
}

/** Blanks that are compressed without ever being in memory. */
export async function bomb(length: number): Promise<Packed> {
  const compressor = zlib.createBrotliCompress({ params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 } })
  const blanks = Buffer.alloc(2 ** 20, 0x20)
  const source = Readable.from(Array(length / blanks.length).fill(blanks))
  const chunks: Buffer[] = []
  for await (const chunk of source.pipe(compressor)) chunks.push(chunk)
  return { packed: Buffer.concat(chunks), length }
}

const pack = (bytes: Buffer): Packed => ({ packed: zlib.brotliCompressSync(bytes), length: bytes.length })

/** Writes the file of an iteration; what the summary says of its blocks wins over what is so. */
export async function writeForged(
  run: string,
  iteration: number,
  { summary, blocks }: { summary: Json | Packed; blocks: readonly (Buffer | Packed)[] },
): Promise<number> {
  const packed = blocks.map((block) => (Buffer.isBuffer(block) ? pack(block) : block))
  const said = isPacked(summary) || !Array.isArray(summary.blocks) ? [] : summary.blocks
  let offset = 8
  const told = packed.map(({ packed: bytes, length }, at) => {
    const own = { offset, bytes: bytes.length, checksum: zlib.crc32(bytes), length, groups: [0], ...said[at] }
    offset += bytes.length
    return own
  })
  const last = isPacked(summary) ? summary : pack(Buffer.from(JSON.stringify({ ...summary, blocks: told })))
  const numbers = Buffer.alloc(8)
  numbers.writeUInt32LE(last.packed.length, 0)
  numbers.writeUInt32LE(zlib.crc32(last.packed), 4)
  const path = episodesPath(run, iteration)
  await mkdir(dirname(path), { recursive: true })
  const bytes = [...packed.map((block) => block.packed), last.packed]
  const file = Buffer.concat([Buffer.from("GIGPOEP1"), ...bytes, numbers, Buffer.from("GIGPOEND")])
  await writeFile(path, file)
  return file.length
}

export function packedText(text: string): Packed {
  return pack(Buffer.from(text))
}

function isPacked(summary: Json | Packed): summary is Packed {
  return Buffer.isBuffer(summary.packed)
}

export function readParts(block: Buffer): ForgedPart[] {
  const parts: ForgedPart[] = []
  for (let at = 0; at < block.length; ) {
    let end = at + 4 + block.readUInt32LE(at)
    const { arrays, ...about } = JSON.parse(block.toString("utf8", at + 4, end))
    const columns = Object.entries(arrays as Record<string, [keyof typeof types, number]>).map(
      ([name, [type, length]]) => {
        const from = end
        end += length * types[type].BYTES_PER_ELEMENT
        return [name, { type, values: [...new types[type](new Uint8Array(block.subarray(from, end)).buffer)] }]
      },
    )
    parts.push({ about, arrays: Object.fromEntries(columns) })
    at = end
  }
  return parts
}

export function writeParts(parts: readonly ForgedPart[]): Buffer {
  return Buffer.concat(
    parts.flatMap(({ about, arrays }) => {
      const made = Object.entries(arrays).map(
        ([name, { type, values }]) => [name, type, new types[type as keyof typeof types](values)] as const,
      )
      const shapes = Object.fromEntries(made.map(([name, type, { length }]) => [name, [type, length]]))
      const header = Buffer.from(JSON.stringify({ ...about, arrays: shapes }))
      const length = Buffer.alloc(4)
      length.writeUInt32LE(header.length)
      return [length, header, ...made.map(([, , values]) => Buffer.from(values.buffer))]
    }),
  )
}
