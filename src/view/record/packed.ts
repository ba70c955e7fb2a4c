import { isObject } from "../../options/read.ts"
import { isCount, parseLimited } from "./shape.ts"

// Header and arrays of numbers in a format like safetensors: [uint32 size of the header][header: JSON in UTF-8][arrays], little endian. The
// arrays have the order of the header's `arrays`: { name: [type, length] }.

const types = { Uint8Array, Uint16Array, Int32Array, Float32Array, Float64Array }

export type Numbers = Uint8Array | Uint16Array | Int32Array | Float32Array | Float64Array

type Shapes = Readonly<Record<string, readonly [type: keyof typeof types, length: number]>>

/** Packs a header and arrays. Strings of the header may contain lone surrogates. */
export function pack(about: object, arrays: Readonly<Record<string, Numbers>>): Buffer {
  const shapes: Shapes = Object.fromEntries(
    Object.entries(arrays).map(([name, values]) => [
      name,
      [values.constructor.name as keyof typeof types, values.length],
    ]),
  )
  const header = Buffer.from(JSON.stringify({ ...about, arrays: shapes }))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(header.length)
  const bytes = Object.values(arrays).map((values) => Buffer.from(values.buffer, values.byteOffset, values.byteLength))
  return Buffer.concat([length, header, ...bytes])
}

export interface Unpacked<About> {
  readonly about: About
  readonly arrays: Readonly<Record<string, Numbers | undefined>>
  /** Offset after the packed bytes. */
  readonly end: number
}

/** Maximum size of a header. */
const longestHeader = 2 ** 24

/** Unpacks a header and arrays at `start`. Throws for invalid bytes. The content of the header is not checked. */
export function unpack(bytes: Buffer, start: number): Unpacked<unknown> {
  const length = bytes.readUInt32LE(start)
  if (length > Math.min(longestHeader, bytes.length - start - 4))
    throw new RangeError("a header is longer than the remaining bytes")
  let end = start + 4 + length
  const header = parseLimited(bytes.toString("utf8", start + 4, end))
  if (!isObject(header) || !isObject(header.arrays)) throw new Error("a header has no arrays")
  const { arrays: shapes, ...about } = header
  const arrays = Object.entries(shapes as Record<string, unknown>).map(([name, shape]) => {
    const [type, length] = Array.isArray(shape) ? (shape as [keyof typeof types, number]) : []
    if (type === undefined || !Object.hasOwn(types, type) || !isCount(length)) throw new Error(`its ${name} is wrong`)
    const from = end
    end += length! * types[type].BYTES_PER_ELEMENT
    if (end > bytes.length) throw new RangeError(`${name} is longer than the remaining bytes`)
    // Copied, because typed arrays need aligned offsets.
    return [name, new types[type](new Uint8Array(bytes.subarray(from, end)).buffer)]
  })
  return { about, arrays: Object.fromEntries(arrays), end }
}
