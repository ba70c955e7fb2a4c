import { GigpoError } from "../../util/errors.ts"
import { LostResult, type ResultOptions, type Settled } from "./futures.ts"
import { isUnread } from "./refused.ts"
import type { Session } from "./session.ts"

/** Request to a model: a body without model_id and seq_id, or a function that encodes a request with both. */
export type ModelRequest = object | ((modelId: string, seqId: number) => Uint8Array | object)

/** Options of `RemoteModel.submit`. */
export interface SubmitOptions extends ResultOptions {
  /** Whether to reuse the number of the previous request, to probe whether the server recognizes it. Default false. */
  readonly repeat?: boolean
}

/** Request that the server has accepted. */
export interface Submitted {
  readonly requestId: string
  result(): Promise<Settled>
}

/**
 * Model on the server. Requests that change it are sent one at a time, in order and numbered. Their results are awaited separately.
 * If a server does not recognize repeated requests, a request with an unknown outcome makes the model unusable.
 */
export class RemoteModel {
  readonly id: string
  readonly #session: Session
  readonly #again: boolean
  #seq = 0
  #last: Promise<unknown> = Promise.resolve()
  #spoiled: GigpoError | undefined

  constructor(session: Session, id: string, again: boolean, used = 0) {
    this.#session = session
    this.id = id
    this.#again = again
    this.#seq = used
  }

  /** Sends a request after all earlier ones have been accepted. */
  async submit(path: string, request: ModelRequest, { repeat, ...options }: SubmitOptions = {}): Promise<Submitted> {
    const sent = this.#last.then(async () => {
      options.signal?.throwIfAborted()
      if (this.#spoiled) throw this.#spoiled
      const seq = repeat ? this.#seq : ++this.#seq
      const body =
        typeof request === "function" ? request(this.id, seq) : { model_id: this.id, seq_id: seq, ...request }
      try {
        // Not abortable: the outcome would be unknown.
        const answer = (await this.#session.connection.send({ path, body }, this.#again)).body
        return requestIdOf(answer, path)
      } catch (error) {
        if (isUnread(error)) this.#seq = seq - 1
        if (GigpoError.is(error) && error.code === "ENGINE_LOST") this.#spoiled = error
        throw error
      }
    })
    this.#last = sent.catch(() => {})
    const requestId = await sent
    return { requestId, result: () => this.#result(requestId, path, options) }
  }

  async #result(requestId: string, path: string, options: ResultOptions): Promise<Settled> {
    try {
      return await this.#session.futures.result(requestId, path, options)
    } catch (error) {
      const lost = error instanceof LostResult
      const reason = lost
        ? new GigpoError(
            "ENGINE_LOST",
            `The engine has lost the result of ${path}: ${error.message}. Resume from the last checkpoint.`,
          )
        : error
      if (GigpoError.is(reason) && reason.code === "ENGINE_LOST") this.#spoiled = reason
      throw reason
    }
  }

  /** Sends a request and waits for the result. */
  async call(path: string, request: ModelRequest, options?: SubmitOptions): Promise<Settled> {
    return await (await this.submit(path, request, options)).result()
  }

  /** Makes all further requests fail, because the state on the server is not the expected one. */
  spoil(error: GigpoError): void {
    this.#spoiled ??= error
  }
}

/** Returns the request_id of a response. Throws `ENGINE_REJECTED` if there is none. */
export function requestIdOf(answer: unknown, path: string): string {
  const { request_id } = (answer ?? {}) as { request_id?: unknown }
  if (typeof request_id === "string") return request_id
  throw new GigpoError("ENGINE_REJECTED", `The engine answered ${path} without a request_id.`)
}
