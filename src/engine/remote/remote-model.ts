import { GigpoError } from "../../util/errors.ts"
import { LostResult, type ResultOptions, type Settled } from "./futures.ts"
import { isUnread } from "./refused.ts"
import type { Session } from "./session.ts"

/** What is asked of a model: a body without its model_id and seq_id, or bytes that hold both. */
export type Asked = object | ((modelId: string, seqId: number) => Uint8Array | object)

export interface SubmitOptions extends ResultOptions {
  /** With the number of the request before, to see whether the server knows it again. Default false. */
  readonly repeat?: boolean
}

/** What the server has taken. */
export interface Submitted {
  readonly requestId: string
  result(): Promise<Settled>
}

/**
 * A model on the server. What changes it is sent one request at a time, in order, each with the next number; results are waited for
 * elsewhere. Where the server does not know a request again, one whose fate is unknown ends the model.
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

  /** Sends it when those before have been taken. */
  async submit(path: string, asked: Asked, { repeat, ...options }: SubmitOptions = {}): Promise<Submitted> {
    const sent = this.#last.then(async () => {
      options.signal?.throwIfAborted()
      if (this.#spoiled) throw this.#spoiled
      const seq = repeat ? this.#seq : ++this.#seq
      const body = typeof asked === "function" ? asked(this.id, seq) : { model_id: this.id, seq_id: seq, ...asked }
      try {
        // Not to be aborted: what became of it would not be known.
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
      const told = lost
        ? new GigpoError(
            "ENGINE_LOST",
            `The engine has lost what came of ${path}: ${error.message}. Resume from the last checkpoint.`,
          )
        : error
      if (GigpoError.is(told) && told.code === "ENGINE_LOST") this.#spoiled = told
      throw told
    }
  }

  /** Submits and waits. */
  async call(path: string, asked: Asked, options?: SubmitOptions): Promise<Settled> {
    return await (await this.submit(path, asked, options)).result()
  }

  /** From now on every request fails: what the server holds is not what this side thinks. */
  spoil(error: GigpoError): void {
    this.#spoiled ??= error
  }
}

export function requestIdOf(answer: unknown, path: string): string {
  const { request_id } = (answer ?? {}) as { request_id?: unknown }
  if (typeof request_id === "string") return request_id
  throw new GigpoError("ENGINE_REFUSED", `The engine answered ${path} without a request_id.`)
}
