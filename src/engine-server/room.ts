import { ApiError } from "../chat/api-error.ts"

/** Memory budget that requests share. */
export class Room {
  #left: number
  readonly #size: number

  constructor(bytes: number) {
    this.#size = bytes
    this.#left = bytes
  }

  /**
   * Runs work that reserves bytes with `hold`; they are released at its end.
   *
   * @throws ApiError 429 where no memory is left; clients then repeat the request
   */
  async holding<T>(work: (hold: (bytes: number) => void) => Promise<T>): Promise<T> {
    let held = 0
    const hold = (bytes: number) => {
      if (bytes > this.#left)
        throw new ApiError(429, `Requests of more than ${this.#size} bytes are being read; repeat the request later.`)
      this.#left -= bytes
      held += bytes
    }
    try {
      return await work(hold)
    } finally {
      this.#left += held
    }
  }
}
