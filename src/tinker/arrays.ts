import { GigpoError } from "../util/errors.ts"

// Numbers as little-endian bytes, which is also the byte order of all supported machines.

/** Codes of number types in the API. */
export const dtypes = { float32: 1, int64: 2, int32: 3, bfloat16: 4 } as const

/** Values of a tensor: floating-point numbers or 32-bit integers. */
export type Values = Float32Array | Int32Array

const widths: Readonly<Record<number, number>> = { 1: 4, 2: 8, 3: 4, 4: 2 }

/**
 * Returns the number of values in a buffer.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an unknown type, or a length that is not a multiple of its size.
 */
export function countValues(bytes: Uint8Array, dtype: number): number {
  const width = widths[dtype]
  if (width === undefined) throw new GigpoError("BAD_ARGUMENT", `The number type ${dtype} is not supported.`)
  if (bytes.length % width > 0)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `A buffer has ${bytes.length} bytes, which is not a multiple of the ${width} bytes of a value.`,
    )
  return bytes.length / width
}

/** Reads values. Throws the errors of `countValues`, and `BAD_ARGUMENT` for an integer above 32 bits. */
export function readValues(bytes: Uint8Array, dtype: number): Values {
  countValues(bytes, dtype)
  const { buffer } = new Uint8Array(bytes) // a copy is aligned
  if (dtype === dtypes.float32) return new Float32Array(buffer)
  if (dtype === dtypes.int32) return new Int32Array(buffer)
  if (dtype === dtypes.bfloat16) return fromBfloat16(new Uint16Array(buffer))
  return fromInt64(new Int32Array(buffer))
}

/**
 * Converts 64-bit integers.
 *
 * @param halves - low and high half of each
 */
function fromInt64(halves: Int32Array): Int32Array {
  const values = new Int32Array(halves.length / 2)
  for (let i = 0; i < values.length; i++) {
    const low = halves[2 * i]!
    if (halves[2 * i + 1] !== low >> 31) throw new GigpoError("BAD_ARGUMENT", "An integer does not fit into 32 bits.")
    values[i] = low
  }
  return values
}

/** Converts bfloat16 numbers, which are the upper halves of float32 numbers. */
function fromBfloat16(upper: Uint16Array): Float32Array {
  return new Float32Array(Uint32Array.from(upper, (half) => half << 16).buffer)
}

/** Returns integers as 64-bit little-endian bytes. */
export function int64Bytes(values: ArrayLike<number>): Uint8Array {
  const halves = new Int32Array(2 * values.length)
  for (let i = 0; i < values.length; i++) {
    halves[2 * i] = values[i]!
    halves[2 * i + 1] = values[i]! >> 31
  }
  return bytesOf(halves)
}

/** Returns a view of the same memory as bytes. */
export function bytesOf(values: Values): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
}

export const readInt32 = (bytes: Uint8Array): Int32Array => readValues(bytes, dtypes.int32) as Int32Array
export const readFloat32 = (bytes: Uint8Array): Float32Array => readValues(bytes, dtypes.float32) as Float32Array
export const readInt64 = (bytes: Uint8Array): Int32Array => readValues(bytes, dtypes.int64) as Int32Array
