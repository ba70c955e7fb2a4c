import type { IncomingMessage } from "node:http"
import { Pace } from "../util/pace.ts"
import { clientNumber } from "./address.ts"
import { ApiError } from "./api-error.ts"
import { decoded } from "./decoded.ts"

/** Limits of the bytes of request bodies in memory: in total and per client. */
export class BodyBudget {
  readonly #most: number
  readonly #ofClient: number
  readonly #encodings: readonly string[]
  #held = 0
  readonly #byClient = new Map<string, number>()

  /** @param encodings - content encodings that are passed on */
  constructor(most: number, ofClient: number, encodings: readonly string[]) {
    this.#most = most
    this.#ofClient = ofClient
    this.#encodings = encodings
  }

  /**
   * Reads the body of a request, without gzip, at the pace of the client: 32 long bodies that arrive at the same time
   * would take 10 ms of every turn of the event loop. `release` returns its bytes to the budget once the request is answered.
   *
   * @throws ApiError 503 if the budget is exhausted
   */
  read(incoming: IncomingMessage, client: string): { readonly body: AsyncIterable<Buffer>; release(): void } {
    let taken = 0
    const count = (bytes: number) => {
      taken += bytes
      this.#held += bytes
      const held = (this.#byClient.get(client) ?? 0) + bytes
      if (held > 0) this.#byClient.set(client, held)
      else this.#byClient.delete(client)
      if (bytes > 0 && (held > this.#ofClient || this.#held > this.#most))
        throw new ApiError(503, "The server is reading too many request bytes; try again later.")
    }
    const encodings = this.#encodings
    const body = async function* () {
      const pace = new Pace(undefined, clientNumber(client)) // only for requests that are read: a number is a hash
      for await (const chunk of decoded(incoming, encodings)) {
        count(chunk.length)
        yield chunk
        if (pace.due()) await pace.rest()
      }
    }
    return { body: body(), release: () => count(-taken) }
  }
}
