import { GigpoError } from "../../util/errors.ts"
import { type GgufType, ggufType } from "./types.ts"

/** Value of GGUF metadata. 64-bit integers beyond 2^53 stay bigint. */
export type GgufValue = number | bigint | boolean | string | readonly GgufValue[]

/** Description of one tensor in the header of a GGUF file. */
export interface GgufTensor {
  readonly type: GgufType
  /** Outermost dimension first, as in PyTorch: a matrix is [out, in]. */
  readonly shape: readonly number[]
  /** Position of the first byte, counted from the start of the tensor data. */
  readonly offset: number
  readonly bytes: number
}

/** Parsed header of a GGUF file. */
export interface GgufHeader {
  readonly metadata: ReadonlyMap<string, GgufValue>
  readonly tensors: ReadonlyMap<string, GgufTensor>
  /** Position of the tensor data in the file. */
  readonly start: number
}

/** Thrown by the parser where the header goes beyond the bytes given so far. */
export class MoreBytesNeeded extends Error {}

/** Limits on the counts and lengths in a file. Published models stay far below. */
const limits = { nameBytes: 65535, keys: 65536, tensors: 65536, dimensions: 4, depth: 4, elements: 2 ** 24 } as const

/** Returns the error for a file that breaks the GGUF format. */
export function badGguf(file: string, what: string): GigpoError {
  return new GigpoError("BAD_MODEL", `${file} is not a usable GGUF file: ${what}. Download or convert the model again.`)
}

/** Bytes of the scalar types of metadata by their number in the format; 8 is a string, 9 an array. */
const scalarBytes: Readonly<Record<number, number>> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  10: 8,
  11: 8,
  12: 8,
}
const stringType = 8
const arrayType = 9

/**
 * Parses the header of a GGUF file, version 2 or 3: metadata, then the descriptions of the tensors
 * (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Counts and lengths are compared with the size of the file before
 * anything is allocated for them.
 *
 * @param bytes - the first bytes of the file.
 * @param size - size of the whole file.
 * @throws MoreBytesNeeded where `bytes` ends within the header; GigpoError `BAD_MODEL` if the file breaks the format.
 */
export function parseGguf(bytes: Uint8Array, size: number, file: string): GgufHeader {
  const reader = new Reader(bytes, size, file)
  if (reader.number(4, "magic") !== 0x46554747) throw badGguf(file, "it does not start with GGUF")
  const version = reader.number(4, "version")
  if (version >>> 16 !== 0 && (version & 0xffff) === 0)
    throw badGguf(file, "it is big-endian; only little-endian files are supported")
  if (version !== 2 && version !== 3) throw badGguf(file, `it has version ${version}; supported are 2 and 3`)
  const tensorCount = reader.count("tensors", limits.tensors, 24)
  const keyCount = reader.count("metadata keys", limits.keys, 13)

  const metadata = new Map<string, GgufValue>()
  for (let i = 0; i < keyCount; i++) {
    const key = reader.text("a metadata key", limits.nameBytes)
    if (metadata.has(key)) throw badGguf(file, `the metadata key ${JSON.stringify(key.slice(0, 80))} occurs twice`)
    metadata.set(key, reader.value(reader.number(4, "a type"), limits.depth))
  }
  const alignment = metadata.get("general.alignment") ?? 32
  if (typeof alignment !== "number" || alignment < 8 || alignment > 65536 || (alignment & (alignment - 1)) !== 0)
    throw badGguf(file, `general.alignment is ${String(alignment)}, which is not a power of two from 8 to 65536`)

  const tensors = new Map<string, GgufTensor>()
  for (let i = 0; i < tensorCount; i++) {
    const name = reader.text("a tensor name", limits.nameBytes)
    if (tensors.has(name)) throw badGguf(file, `the tensor ${JSON.stringify(name.slice(0, 80))} occurs twice`)
    tensors.set(name, readTensor(reader, name, alignment, file))
  }
  const start = Math.ceil(reader.at / alignment) * alignment
  checkPlaces(tensors, start, size, file)
  return { metadata, tensors, start }
}

function readTensor(reader: Reader, name: string, alignment: number, file: string): GgufTensor {
  const shown = `the tensor ${JSON.stringify(name.slice(0, 80))}`
  const dimensions = reader.number(4, "the number of dimensions")
  if (dimensions > limits.dimensions) throw badGguf(file, `${shown} has ${dimensions} dimensions`)
  const innerFirst = Array.from({ length: dimensions }, () => reader.safe(`a dimension of ${shown}`))
  const id = reader.number(4, "a tensor type")
  const type = ggufType(id)
  if (!type) throw badGguf(file, `${shown} has the unknown type ${id}`)
  let elements = 1
  for (const dimension of innerFirst) {
    elements *= dimension
    if (elements > Number.MAX_SAFE_INTEGER) throw badGguf(file, `${shown} has more than 2^53 elements`)
  }
  if ((innerFirst[0] ?? 1) % type.elements !== 0)
    throw badGguf(
      file,
      `${shown} has rows of ${innerFirst[0]} elements, not a multiple of the ${type.elements} in a block of ${type.name}`,
    )
  const offset = reader.safe(`the offset of ${shown}`)
  if (offset % alignment !== 0)
    throw badGguf(file, `${shown} starts at ${offset}, not a multiple of the alignment ${alignment}`)
  return { type, shape: innerFirst.reverse(), offset, bytes: (elements / type.elements) * type.bytes }
}

/** Checks that tensors lie within the file and do not overlap. */
function checkPlaces(tensors: ReadonlyMap<string, GgufTensor>, start: number, size: number, file: string): void {
  let [end, before] = [0, ""]
  for (const [name, { offset, bytes }] of [...tensors].sort(
    ([, a], [, b]) => a.offset - b.offset || a.bytes - b.bytes,
  )) {
    if (offset < end) throw badGguf(file, `the tensors ${JSON.stringify(before)} and ${JSON.stringify(name)} overlap`)
    ;[end, before] = [offset + bytes, name]
    if (start + end > size)
      throw badGguf(
        file,
        `the tensor ${JSON.stringify(name)} ends at byte ${start + end} of a file of ${size}: the download is incomplete`,
      )
  }
}

class Reader {
  at = 0
  readonly #bytes: Uint8Array
  readonly #view: DataView
  readonly #size: number
  readonly #file: string
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

  constructor(bytes: Uint8Array, size: number, file: string) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#size = size
    this.#file = file
  }

  /** Returns the position of the next `length` bytes and moves past them. */
  #take(length: number, what: string): number {
    const at = this.at
    if (length > this.#size - at)
      throw badGguf(this.#file, `${what} ends after the end of the file (${this.#size} bytes)`)
    if (length > this.#bytes.length - at) throw new MoreBytesNeeded()
    this.at = at + length
    return at
  }

  /** Reads an unsigned integer of 4 bytes. */
  number(length: 4, what: string): number {
    return this.#view.getUint32(this.#take(length, what), true)
  }

  /** Reads an unsigned 64-bit integer up to 2^53 − 1. */
  safe(what: string): number {
    const value = this.#view.getBigUint64(this.#take(8, what), true)
    if (value > Number.MAX_SAFE_INTEGER) throw badGguf(this.#file, `${what} is ${value}`)
    return Number(value)
  }

  /** Reads a number of items of at least `bytesEach` bytes, and checks that the rest of the file can hold them. */
  count(what: string, most: number, bytesEach: number): number {
    const value = this.safe(`the number of ${what}`)
    if (value > most) throw badGguf(this.#file, `it declares ${value} ${what}; at most ${most} are supported`)
    if (value * bytesEach > this.#size - this.at)
      throw badGguf(this.#file, `it declares ${value} ${what}, which do not fit in the file`)
    return value
  }

  text(what: string, most: number): string {
    const length = this.safe(`the length of ${what}`)
    if (length > most) throw badGguf(this.#file, `${what} has ${length} bytes; at most ${most} are supported`)
    const at = this.#take(length, what)
    try {
      return this.#decoder.decode(this.#bytes.subarray(at, at + length))
    } catch {
      throw badGguf(this.#file, `${what} is not UTF-8`)
    }
  }

  value(type: number, depth: number): GgufValue {
    if (type === stringType) return this.text("a string", 2 ** 24)
    if (type === arrayType) return this.#array(depth)
    const length = scalarBytes[type]
    if (length === undefined) throw badGguf(this.#file, `a metadata value has the unknown type ${type}`)
    return this.#scalar(type, this.#take(length, "a metadata value"))
  }

  #array(depth: number): readonly GgufValue[] {
    if (depth === 0) throw badGguf(this.#file, `arrays are nested more than ${limits.depth} deep`)
    const type = this.number(4, "the type of an array")
    const bytesEach = type === stringType ? 8 : type === arrayType ? 12 : scalarBytes[type]
    if (bytesEach === undefined) throw badGguf(this.#file, `an array has the unknown type ${type}`)
    const count = this.count("elements of an array", limits.elements, bytesEach)
    // The bytes must be available before anything is allocated for them.
    if (this.at + count * bytesEach > this.#bytes.length) throw new MoreBytesNeeded()
    return Array.from({ length: count }, () => this.value(type, depth - 1))
  }

  #scalar(type: number, at: number): GgufValue {
    const view = this.#view
    if (type === 0) return view.getUint8(at)
    if (type === 1) return view.getInt8(at)
    if (type === 2) return view.getUint16(at, true)
    if (type === 3) return view.getInt16(at, true)
    if (type === 4) return view.getUint32(at, true)
    if (type === 5) return view.getInt32(at, true)
    if (type === 6) return view.getFloat32(at, true)
    if (type === 7) return this.#boolean(view.getUint8(at))
    if (type === 12) return view.getFloat64(at, true)
    const value = type === 10 ? view.getBigUint64(at, true) : view.getBigInt64(at, true)
    return Number.isSafeInteger(Number(value)) ? Number(value) : value
  }

  #boolean(byte: number): boolean {
    if (byte > 1) throw badGguf(this.#file, `a boolean has the value ${byte}`)
    return byte === 1
  }
}
