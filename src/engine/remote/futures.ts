import { setTimeout as wait } from "node:timers/promises"
import { GigpoError } from "../../util/errors.ts"
import { attemptsToTell, type Connection } from "./connection.ts"
import { excerpt, refused } from "./refused.ts"

/** Request that the server has accepted but not answered. */
export interface PendingRequest {
  /** Path of the API, such as /optim_step. */
  readonly path: string
  /** Time of the request in milliseconds since 1970. */
  readonly since: number
  /** State of the queue that the server reports: active, paused_capacity or paused_rate_limit. */
  readonly state: string | undefined
  /** Reason of that state, if the server reports one. */
  readonly reason: string | undefined
}

/** Result of a request. */
export interface Settled {
  readonly body: unknown
  /** Bytes of a protocol buffer; absent for JSON. */
  readonly bytes?: Uint8Array | undefined
}

/** Options of `Futures.result`. */
export interface ResultOptions {
  /** Whether the result may be a protocol buffer. Default false. */
  readonly protobuf?: boolean | undefined
  /** Maximum bytes of the result. Default `shortAnswer`. */
  readonly most?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Error for a result that the server has lost or already delivered. */
export class LostResult extends Error {}

/** Timeout in milliseconds of one poll. Servers hold a poll for up to 300 s, and then respond with 408. */
const held = 330_000
/** Number of rejected polls (400) after which the request fails. */
const mostRefusals = 3
/** Milliseconds after which a pause of the server is reported, once. */
const pauseToTell = 60_000

/** Pending results of a server. Every wait has a deadline. */
export class Futures {
  readonly #connection: Connection
  readonly #deadline: number
  readonly #pending = new Map<string, PendingRequest>()

  /** @param deadline - timeout in seconds for completing an accepted request, including pauses of the server. */
  constructor(connection: Connection, deadline: number) {
    this.#connection = connection
    this.#deadline = deadline * 1000
  }

  get pending(): readonly PendingRequest[] {
    return [...this.#pending.values()]
  }

  /**
   * Waits for a result.
   *
   * @throws LostResult; GigpoError `ENGINE_REJECTED` for a failed request, `ENGINE_LOST` if no result arrives in time.
   */
  async result(requestId: string, path: string, options: ResultOptions = {}): Promise<Settled> {
    const since = Date.now()
    this.#pending.set(requestId, { path, since, state: undefined, reason: undefined })
    try {
      return await this.#poll(requestId, path, since, options)
    } finally {
      this.#pending.delete(requestId)
    }
  }

  async #poll(
    request_id: string,
    path: string,
    since: number,
    { protobuf, most, signal }: ResultOptions,
  ): Promise<Settled> {
    let [failures, failing, refusals, warned] = [0, 0, 0, false]
    const began = performance.now() // monotonic, unlike the system clock
    for (let iteration = 0; ; iteration++) {
      const start = performance.now()
      const outcome = await this.#connection.attempt({
        path: "/retrieve_future",
        body: { request_id, allow_metadata_only: false },
        headers: { "x-tinker-request-iteration": String(iteration), "x-tinker-request-type": path.slice(1) },
        ...{ protobuf, most, within: held, signal },
      })
      const age = performance.now() - began
      if (outcome.kind === "answered") {
        if (outcome.bytes) return { body: undefined, bytes: outcome.bytes }
        const body = (outcome.body ?? {}) as Record<string, unknown>
        if (body.error !== undefined) throw failed(path, body)
        if (body.type !== "try_again" && body.status !== "complete_metadata") return { body }
        failures = 0
        const [state, reason] = [textOf(body.queue_state), textOf(body.queue_state_reason)]
        this.#pending.set(request_id, { path, since, state, reason })
        if (!warned && age > pauseToTell && state !== undefined && state !== "active") {
          warned = true
          this.#connection.onWarning(
            `The engine at ${this.#connection.url} has delayed ${path} for ${Math.round(age / 1000)} s: ${state}${reason ? ` (${reason})` : ""}.`,
          )
        }
      } else if (outcome.status === 410) throw new LostResult(outcome.reason)
      else if (outcome.kind === "refused") {
        if (outcome.status !== 400 || ++refusals >= mostRefusals) throw refused(path, outcome.status, outcome.reason)
      } else if (outcome.status !== 408 && outcome.status !== 402) {
        const now = performance.now()
        if (failures++ === 0) failing = now
        if (failures === attemptsToTell) this.#connection.warnOfOutage()
        const silent = now - failing
        if (silent > this.#connection.requestTimeout)
          throw lost(this.#connection.url, path, `for ${Math.round(silent / 1000)} s: ${outcome.reason}`)
      }
      if (age > this.#deadline) throw lost(this.#connection.url, path, `no result within ${this.#deadline / 1000} s`)
      // A server that holds polls open is polled again immediately, others after a pause.
      const quick = performance.now() - start < 1000
      const pause = outcome.kind === "answered" ? 50 : Math.min(125 * 2 ** failures, 30_000)
      if (quick) await wait(outcome.kind !== "answered" && outcome.status === 402 ? 5000 : pause, undefined, { signal })
    }
  }
}

function failed(path: string, { error, category }: Record<string, unknown>): Error {
  const reason = excerpt(error)
  if (/already retrieved/i.test(reason)) return new LostResult(reason)
  const whose = typeof category === "string" ? ` (${category.slice(0, 50)})` : ""
  return new GigpoError("ENGINE_REJECTED", `The engine failed at ${path}${whose}: ${reason}`)
}

function lost(url: string, path: string, what: string): GigpoError {
  return new GigpoError(
    "ENGINE_LOST",
    `The engine at ${url} did not report the result of ${path}: ${what}. Resume from the last checkpoint.`,
  )
}

const textOf = (value: unknown) => (typeof value === "string" ? excerpt(value) : undefined)
