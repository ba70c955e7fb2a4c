import { ApiError } from "../chat/api-error.ts"

/** Memory that requests share. */
export class Room {
  #left: number
  readonly #size: number

  constructor(bytes: number) {
    this.#size = bytes
    this.#left = bytes
  }

  /**
   * Does some work that takes bytes as it needs them, and gives them back at its end.
   *
   * @throws ApiError 429 where others have the memory: clients send the request again.
   */
  async holding<T>(work: (hold: (bytes: number) => void) => Promise<T>): Promise<T> {
    let held = 0
    const hold = (bytes: number) => {
      if (bytes > this.#left)
        throw new ApiError(429, `Requests of more than ${this.#size} bytes are being read; send it again.`)
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
