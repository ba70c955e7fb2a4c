import { setTimeout as wait } from "node:timers/promises"
import { ApiError } from "../chat/api-error.ts"
import type { SampleResult, TrainingResult } from "../tinker/results.ts"
import type { Departures } from "./departures.ts"
import { reportedFailure } from "./reported-failure.ts"
import { bytesOf, written } from "./written-result.ts"

/** Successful result of a request. */
export type Result =
  | { readonly kind: "json"; readonly body: object }
  | { readonly kind: "training"; readonly result: TrainingResult }
  | { readonly kind: "sample"; readonly result: SampleResult }
/** Result or failure of a request. */
export type Settled = Result | { readonly kind: "failed"; readonly error: string; readonly category: "user" | "server" }

/** Options of `Results.take`. */
export interface TakeOptions {
  /** Identity of the request: requests with the same text are executed once. */
  readonly same?: string | undefined
  /** Bytes that the request keeps in memory until it is done. Default 0. */
  readonly holds?: number
}

/** Options of `Results`. */
export interface ResultsSetup {
  /** Prefix of ids. Must be hard to guess, since an id is sufficient to read a result. */
  readonly prefix: string
  readonly departures: Departures
  readonly onError: (error: unknown) => void
  /** Whether there is memory for a number of additional bytes. */
  readonly mayHold: (bytes: number) => boolean
}

/** Milliseconds that a poll is held open; clients time out after 45 s. */
const held = 20_000
/** Milliseconds that a result is kept: after its first fetch (the response may have been lost), or after it was available. */
const keptFor = { fetched: 300_000, unfetched: 900_000 }
/** Maximum number of requests of a session that are not done or not fetched. */
const mostOpen = 16_384
/** Maximum bytes of fetched results; above it, the oldest are dropped early. */
const mostFetched = 64 * 2 ** 20
/** Bytes of an entry without its result. */
const overhead = 1024

interface Entry {
  readonly settled: Promise<Settled>
  readonly settle: (value: Settled) => void
  readonly same: string | undefined
  bytes: number
  polls: number
  fetched: boolean
  timer?: NodeJS.Timeout
}

/** Results of the requests of one session, by request id. */
export class Results {
  readonly #setup: ResultsSetup
  readonly #entries = new Map<string, Entry>()
  readonly #same = new Map<string, string>()
  /** Ids of fetched results, oldest first. */
  readonly #fetched = new Set<string>()
  #bytes = 0
  #fetchedBytes = 0
  #count = 0

  constructor(setup: ResultsSetup) {
    this.#setup = setup
  }

  /** Bytes of requests that are not done and of results that are not fetched. */
  get bytes(): number {
    return this.#bytes
  }

  /** Number of results and requests, fetched ones included. */
  get size(): number {
    return this.#entries.size
  }

  /**
   * Accepts a request.
   *
   * @param start - starts the work; not called for a repeated request
   * @returns the id of the request
   * @throws ApiError 429 where too many results are not fetched; the errors of `start`
   */
  take(kind: string, start: () => Promise<Result>, { same, holds = 0 }: TakeOptions = {}): string {
    const before = same === undefined ? undefined : this.#same.get(same)
    if (before !== undefined) return before
    const bytes = overhead + holds
    if (this.#entries.size - this.#fetched.size >= mostOpen)
      throw new ApiError(
        429,
        `This session has ${mostOpen} requests with results that are not fetched; fetch them first.`,
      )
    if (!this.#setup.mayHold(bytes))
      throw new ApiError(429, "The requests of this session have used up its share of memory; fetch results first.")
    const work = start()
    const id = `${this.#setup.prefix}:${kind}-${++this.#count}`
    let settle: (value: Settled) => void = () => {}
    const settled = new Promise<Settled>((resolve) => {
      settle = resolve
    })
    const entry: Entry = { settled, settle, same, bytes, polls: 0, fetched: false }
    this.#entries.set(id, entry)
    if (same !== undefined) this.#same.set(same, id)
    this.#bytes += bytes
    void this.#outcome(work).then((outcome) => this.#done(id, outcome))
    return id
  }

  /** Returns the response to /retrieve_future. Throws `ApiError` 404 for an unknown id. */
  async answer(id: string, protobuf: boolean, signal: AbortSignal): Promise<Response> {
    const entry = this.#entries.get(id)
    if (!entry) throw new ApiError(404, `The request ${id.slice(0, 200)} does not exist.`)
    const { departures } = this.#setup
    const plain = departures.has("plain-try-again")
    const late = new AbortController()
    const leave = () => late.abort()
    signal.addEventListener("abort", leave, { once: true })
    const tooLong = wait(plain ? 10 : held, undefined, { signal: late.signal }).catch(() => undefined)
    const settled = await Promise.race([entry.settled, tooLong])
    late.abort()
    signal.removeEventListener("abort", leave)
    if (!settled || (plain && entry.polls++ === 0))
      return Response.json({ type: "try_again", ...(!plain && { request_id: id, queue_state: "active" }) })
    if (departures.has("results-once") && entry.fetched) return written(gone, false)
    this.#wasFetched(id, entry)
    return written(settled, protobuf && !departures.has("json-only"))
  }

  /** Drops all results. Open polls are answered with a failure. */
  close(): void {
    for (const [id, { settle }] of this.#entries) {
      settle({ kind: "failed", error: "The session has ended.", category: "user" })
      this.#drop(id)
    }
  }

  async #outcome(work: Promise<Result>): Promise<Settled> {
    try {
      return await work
    } catch (error) {
      const { log, ...reportedError } = reportedFailure(error)
      if (log) this.#setup.onError(error)
      return { kind: "failed", ...reportedError }
    }
  }

  #done(id: string, outcome: Settled): void {
    const entry = this.#entries.get(id)
    if (!entry) return // the session has ended
    const bytes = overhead + bytesOf(outcome)
    this.#bytes += bytes - entry.bytes
    entry.bytes = bytes
    entry.timer = setTimeout(() => this.#drop(id), keptFor.unfetched).unref()
    entry.settle(outcome)
  }

  #wasFetched(id: string, entry: Entry): void {
    if (entry.fetched || !this.#entries.has(id)) return
    entry.fetched = true
    clearTimeout(entry.timer)
    entry.timer = setTimeout(() => this.#drop(id), keptFor.fetched).unref()
    this.#bytes -= entry.bytes
    this.#fetchedBytes += entry.bytes
    this.#fetched.add(id)
    for (const oldest of this.#fetched) {
      if (this.#fetchedBytes <= mostFetched || oldest === id) break
      this.#drop(oldest)
    }
  }

  #drop(id: string): void {
    const entry = this.#entries.get(id)
    if (!entry) return
    clearTimeout(entry.timer)
    this.#entries.delete(id)
    if (entry.same !== undefined) this.#same.delete(entry.same)
    if (this.#fetched.delete(id)) this.#fetchedBytes -= entry.bytes
    else this.#bytes -= entry.bytes
  }
}

const gone: Settled = { kind: "failed", error: "future id result already retrieved", category: "server" }
