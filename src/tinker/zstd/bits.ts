import { GigpoError } from "../../util/errors.ts"

/** Returns the error for data that is not valid zstd. */
export const malformed = () => new GigpoError("BAD_ARGUMENT", "The data is not valid zstd.")

/** Reader of bits from the end of a buffer to its beginning, highest bit first. The first 1 bit marks the start. */
export class BackwardBits {
  readonly #bytes: Uint8Array
  /** Number of remaining bits; negative after reading too many. */
  left: number

  /** @throws GigpoError `BAD_ARGUMENT` if the start mark is missing. */
  constructor(bytes: Uint8Array) {
    const last = bytes.at(-1) ?? 0
    if (last === 0) throw malformed()
    this.#bytes = bytes
    this.left = 8 * bytes.length - 1 - Math.clz32(last << 24)
  }

  /** Returns the next bits, at most 16, without consuming them. Bits beyond the end are 0. */
  peek(count: number): number {
    const from = this.left - count
    if (from < 0) return this.left > 0 ? this.#at(0, this.left) << -from : 0
    return this.#at(from, count)
  }

  /** Consumes and returns the next bits. Throws `BAD_ARGUMENT` if fewer are left. */
  take(count: number): number {
    if (count > 16) return this.take(count - 16) * 65_536 + this.take(16)
    this.left -= count
    if (this.left < 0) throw malformed()
    return this.#at(this.left, count)
  }

  #at(from: number, count: number): number {
    const place = from >> 3
    const three = this.#bytes[place]! | (this.#bytes[place + 1]! << 8) | (this.#bytes[place + 2]! << 16)
    return (three >>> (from & 7)) & ((1 << count) - 1)
  }
}
