import { isObject } from "../../options/read.ts"
import { isCount, parseLimited } from "./shape.ts"

// A header and arrays of numbers as bytes, as in safetensors: [uint32, bytes of the header][header: JSON in UTF-8][arrays], little endian,
// the arrays one after the other as the header's `arrays` names them: { name: [type, length] }.

const types = { Uint8Array, Uint16Array, Int32Array, Float32Array, Float64Array }

export type Numbers = Uint8Array | Uint16Array | Int32Array | Float32Array | Float64Array

type Shapes = Readonly<Record<string, readonly [type: keyof typeof types, length: number]>>

/** What JSON holds survives as it is; strings may hold anything, lone surrogates too. */
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
  /** Where what follows begins. */
  readonly end: number
}

/** Characters of a header. */
const longestHeader = 2 ** 24

/** What was packed at `start`; throws where the bytes are something else. The account is not checked. */
export function unpack(bytes: Buffer, start: number): Unpacked<unknown> {
  const length = bytes.readUInt32LE(start)
  if (length > Math.min(longestHeader, bytes.length - start - 4))
    throw new RangeError("a header is longer than what there is")
  let end = start + 4 + length
  const header = parseLimited(bytes.toString("utf8", start + 4, end))
  if (!isObject(header) || !isObject(header.arrays)) throw new Error("a header has no arrays")
  const { arrays: shapes, ...about } = header
  const arrays = Object.entries(shapes as Record<string, unknown>).map(([name, shape]) => {
    const [type, length] = Array.isArray(shape) ? (shape as [keyof typeof types, number]) : []
    if (type === undefined || !Object.hasOwn(types, type) || !isCount(length)) throw new Error(`its ${name} is wrong`)
    const from = end
    end += length! * types[type].BYTES_PER_ELEMENT
    if (end > bytes.length) throw new RangeError(`${name} is longer than what there is`)
    // Copied, because an array of numbers may begin at a multiple of their size only.
    return [name, new types[type](new Uint8Array(bytes.subarray(from, end)).buffer)]
  })
  return { about, arrays: Object.fromEntries(arrays), end }
}
