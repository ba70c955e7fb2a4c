// Lucene stores the length of a document in one byte: exact up to 23, then a floating-point number with four significant
// bits.

const exact = 24

/** Byte code of a length in terms. */
export function lengthToByte(length: number): number {
  if (length < exact) return length
  const rest = length - exact
  const bits = 32 - Math.clz32(rest)
  if (bits < 4) return exact + rest
  // Leading bit implied, three bits of mantissa, and the shift plus one above them.
  return exact + (((rest >>> (bits - 4)) & 7) | ((bits - 3) << 3))
}

/** Length of a byte code: the smallest of all lengths with that code. */
export function byteToLength(byte: number): number {
  if (byte < exact) return byte
  const rest = byte - exact
  const shift = (rest >>> 3) - 1
  return exact + (shift < 0 ? rest & 7 : ((rest & 7) | 8) * 2 ** shift)
}
