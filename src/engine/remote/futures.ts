import { setTimeout as wait } from "node:timers/promises"
import { GigpoError } from "../../util/errors.ts"
import { attemptsToTell, type Connection } from "./connection.ts"
import { excerpt, refused } from "./refused.ts"

/** A request that the server has taken and not answered. */
export interface Pending {
  /** Of the API: /optim_step. */
  readonly path: string
  /** Milliseconds since 1970. */
  readonly since: number
  /** What the server says of its queue: active, paused_capacity, paused_rate_limit. */
  readonly state: string | undefined
  readonly reason: string | undefined
}

export interface Settled {
  readonly body: unknown
  /** Where it came as a protocol buffer. */
  readonly bytes?: Uint8Array | undefined
}

export interface ResultOptions {
  /** Whether it may be a protocol buffer. Default false. */
  readonly protobuf?: boolean | undefined
  /** Bytes that it may have. Default those of a short answer. */
  readonly most?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** A result that is gone: the server has lost the promise, or has handed it out once already. */
export class LostResult extends Error {}

/** Milliseconds that servers hold a question; the longest known is 300 s, and then they say 408. */
const held = 330_000
/** How often a refusal is asked about again. */
const mostRefusals = 3
/** Milliseconds of a pause that are told once. */
const pauseToTell = 60_000

/** The promises of a server: what is pending, and how long it has been. Nothing waits for ever. */
export class Futures {
  readonly #connection: Connection
  readonly #deadline: number
  readonly #pending = new Map<string, Pending>()

  /** @param deadline - seconds that a request which was taken may take, over all pauses of the server. */
  constructor(connection: Connection, deadline: number) {
    this.#connection = connection
    this.#deadline = deadline * 1000
  }

  get pending(): readonly Pending[] {
    return [...this.#pending.values()]
  }

  /**
   * Waits for a result.
   *
   * @throws LostResult; GigpoError `ENGINE_REFUSED` where it failed, `ENGINE_LOST` where the server does not tell in time.
   */
  async result(requestId: string, path: string, asked: ResultOptions = {}): Promise<Settled> {
    const since = Date.now()
    this.#pending.set(requestId, { path, since, state: undefined, reason: undefined })
    try {
      return await this.#poll(requestId, path, since, asked)
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
    let [failures, failing, refusals, told] = [0, 0, 0, false]
    const began = performance.now() // which the machine's clock does not move
    for (let iteration = 0; ; iteration++) {
      const asked = performance.now()
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
        if (!told && age > pauseToTell && state !== undefined && state !== "active") {
          told = true
          this.#connection.onWarning(
            `The engine at ${this.#connection.url} has kept ${path} waiting for ${Math.round(age / 1000)} s: ${state}${reason ? ` (${reason})` : ""}.`,
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
        if (silent > this.#connection.patience)
          throw lost(this.#connection.url, path, `for ${Math.round(silent / 1000)} s: ${outcome.reason}`)
      }
      if (age > this.#deadline) throw lost(this.#connection.url, path, `no result within ${this.#deadline / 1000} s`)
      // A server that holds the question is asked again at once, any other after a while.
      const quick = performance.now() - asked < 1000
      const pause = outcome.kind === "answered" ? 50 : Math.min(125 * 2 ** failures, 30_000)
      if (quick) await wait(outcome.kind !== "answered" && outcome.status === 402 ? 5000 : pause, undefined, { signal })
    }
  }
}

function failed(path: string, { error, category }: Record<string, unknown>): Error {
  const reason = excerpt(error)
  if (/already retrieved/i.test(reason)) return new LostResult(reason)
  const whose = typeof category === "string" ? ` (${category.slice(0, 50)})` : ""
  return new GigpoError("ENGINE_REFUSED", `The engine could not do ${path}${whose}: ${reason}`)
}

function lost(url: string, path: string, what: string): GigpoError {
  return new GigpoError(
    "ENGINE_LOST",
    `The engine at ${url} has not told what became of ${path}; ${what}. Resume from the last checkpoint.`,
  )
}

const textOf = (value: unknown) => (typeof value === "string" ? excerpt(value) : undefined)
