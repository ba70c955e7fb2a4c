import { GigpoError } from "../../util/errors.ts"

export const malformed = () => new GigpoError("BAD_ARGUMENT", "These bytes are not zstd.")

/** Bits that are read from the end of some bytes to their beginning, the highest first. A mark stands before the first. */
export class BackwardBits {
  readonly #bytes: Uint8Array
  /** Bits that are left; below 0 once more were taken than there are. */
  left: number

  /** @throws GigpoError `BAD_ARGUMENT` where there is no mark. */
  constructor(bytes: Uint8Array) {
    const last = bytes.at(-1) ?? 0
    if (last === 0) throw malformed()
    this.#bytes = bytes
    this.left = 8 * bytes.length - 1 - Math.clz32(last << 24)
  }

  /** The next bits, at most 16, without taking them; those before the first are 0. */
  peek(count: number): number {
    const from = this.left - count
    if (from < 0) return this.left > 0 ? this.#at(0, this.left) << -from : 0
    return this.#at(from, count)
  }

  /** @throws GigpoError `BAD_ARGUMENT` where so many are not left. */
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
