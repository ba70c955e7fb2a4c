import { setTimeout as wait } from "node:timers/promises"
import { GigpoError } from "../../errors.ts"
import {
  encodeSample,
  encodeTraining,
  type SampleResult,
  sampleToJson,
  type TrainingResult,
  trainingToJson,
} from "../../tinker/results.ts"
import { ApiError } from "../api-error.ts"
import type { Departures } from "./departures.ts"

/** What came of a request. */
export type Result =
  | { readonly kind: "json"; readonly body: object }
  | { readonly kind: "training"; readonly result: TrainingResult }
  | { readonly kind: "sample"; readonly result: SampleResult }

/** Milliseconds that a question is held; clients give up after 45 s. */
const held = 20_000
/** Milliseconds for which a result that was asked for is kept, for one whose answer was lost. */
const keptFor = 300_000

interface Promised {
  readonly settled: Promise<Settled>
  asked: number
  done: boolean
}
type Settled = Result | { readonly kind: "failed"; readonly error: string; readonly category: "user" | "server" }

/** What requests that were taken come to, by the id that they were given. */
export class Results {
  readonly #promised = new Map<string, Promised>()
  readonly #departures: Departures
  readonly #onError: (error: unknown) => void
  #count = 0

  constructor(departures: Departures, onError: (error: unknown) => void) {
    this.#departures = departures
    this.#onError = onError
  }

  /** @returns the request's id */
  take(kind: string, work: Promise<Result>): string {
    const id = `${kind}-${++this.#count}`
    const settled = work.catch((error: unknown): Settled => {
      if (GigpoError.is(error) || error instanceof ApiError)
        return { kind: "failed", error: error.message, category: "user" }
      this.#onError(error)
      return {
        kind: "failed",
        error: "The engine failed. What happened stands in the server's log.",
        category: "server",
      }
    })
    const promised: Promised = { settled, asked: 0, done: false }
    void settled.then(() => {
      promised.done = true
    })
    this.#promised.set(id, promised)
    return id
  }

  /** Answers /retrieve_future. */
  async answer(id: string, protobuf: boolean, signal: AbortSignal): Promise<Response> {
    const promised = this.#promised.get(id)
    if (!promised) throw new ApiError(404, `There is no request ${id}.`)
    const plain = this.#departures.has("plain-try-again")
    const late = new AbortController()
    const leave = () => late.abort()
    signal.addEventListener("abort", leave, { once: true })
    const tooLong = wait(plain ? 10 : held, undefined, { signal: late.signal }).catch(() => undefined)
    const settled = await Promise.race([promised.settled, tooLong])
    late.abort()
    signal.removeEventListener("abort", leave)
    if (!settled || (plain && promised.asked++ === 0))
      return Response.json({ type: "try_again", ...(!plain && { request_id: id, queue_state: "active" }) })
    if (this.#departures.has("results-once")) {
      this.#promised.set(id, { ...promised, settled: Promise.resolve(gone) })
    } else if (promised.asked++ === 0) setTimeout(() => this.#promised.delete(id), keptFor).unref()
    return written(settled, protobuf && !this.#departures.has("json-only"))
  }
}

const gone: Settled = { kind: "failed", error: "future id result already retrieved", category: "server" }

function written(settled: Settled, protobuf: boolean): Response {
  switch (settled.kind) {
    case "json":
      return Response.json(settled.body)
    case "failed":
      return Response.json({ error: settled.error, category: settled.category })
    case "training":
      return protobuf ? bytes(encodeTraining(settled.result)) : Response.json(trainingToJson(settled.result))
    case "sample":
      return protobuf ? bytes(encodeSample(settled.result)) : Response.json(sampleToJson(settled.result))
  }
}

const bytes = (body: Uint8Array) =>
  new Response(body as Uint8Array<ArrayBuffer>, { headers: { "content-type": "application/x-protobuf" } })
