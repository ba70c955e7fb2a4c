import { GigpoError } from "../util/errors.ts"

// Numbers as little-endian bytes, which is how every machine that this package runs on has them, too.

/** Numbers of `dtype`. */
export const dtypes = { float32: 1, int64: 2, int32: 3, bfloat16: 4 } as const

/** What is read of tensors: real numbers, or whole ones of 32 bits. */
export type Values = Float32Array | Int32Array

const widths: Readonly<Record<number, number>> = { 1: 4, 2: 8, 3: 4, 4: 2 }

/**
 * How many values the bytes hold.
 *
 * @throws GigpoError `BAD_ARGUMENT` where they are no whole number of values.
 */
export function countValues(bytes: Uint8Array, dtype: number): number {
  const width = widths[dtype]
  if (width === undefined) throw new GigpoError("BAD_ARGUMENT", `There is no type of numbers ${dtype}.`)
  if (bytes.length % width > 0)
    throw new GigpoError("BAD_ARGUMENT", `${bytes.length} bytes are no whole number of values of ${width} bytes.`)
  return bytes.length / width
}

/** @throws GigpoError `BAD_ARGUMENT` as `countValues` does, and where an integer does not fit into 32 bits. */
export function readValues(bytes: Uint8Array, dtype: number): Values {
  countValues(bytes, dtype)
  const { buffer } = new Uint8Array(bytes) // a copy is aligned
  if (dtype === dtypes.float32) return new Float32Array(buffer)
  if (dtype === dtypes.int32) return new Int32Array(buffer)
  if (dtype === dtypes.bfloat16) return fromBfloat16(new Uint16Array(buffer))
  return fromInt64(new Int32Array(buffer))
}

/** @param halves - the low and the high half of each. */
function fromInt64(halves: Int32Array): Int32Array {
  const values = new Int32Array(halves.length / 2)
  for (let i = 0; i < values.length; i++) {
    const low = halves[2 * i]!
    if (halves[2 * i + 1] !== low >> 31)
      throw new GigpoError("BAD_ARGUMENT", "A whole number does not fit into 32 bits.")
    values[i] = low
  }
  return values
}

/** bfloat16 is the upper half of a float32. */
function fromBfloat16(upper: Uint16Array): Float32Array {
  return new Float32Array(Uint32Array.from(upper, (half) => half << 16).buffer)
}

export function int64Bytes(values: ArrayLike<number>): Uint8Array {
  const halves = new Int32Array(2 * values.length)
  for (let i = 0; i < values.length; i++) {
    halves[2 * i] = values[i]!
    halves[2 * i + 1] = values[i]! >> 31
  }
  return bytesOf(halves)
}

/** The same memory as bytes. */
export function bytesOf(values: Values): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
}

export const readInt32 = (bytes: Uint8Array): Int32Array => readValues(bytes, dtypes.int32) as Int32Array
export const readFloat32 = (bytes: Uint8Array): Float32Array => readValues(bytes, dtypes.float32) as Float32Array
export const readInt64 = (bytes: Uint8Array): Int32Array => readValues(bytes, dtypes.int64) as Int32Array
