import type { Started } from "../../native/native.ts"
import { GigpoError } from "../../util/errors.ts"
import { settle } from "./started.ts"

/** Kinds of work on an engine, each with the kinds that may run at the same time. */
const beside = {
  /** Reads weights and moments in many calls. */
  reading: ["reading", "call", "preparing"],
  /** Single call that does not change weights. */
  call: ["reading", "call"],
  /** Preparation of such a call. Later calls must not overtake it, since they may clear or read its gradients. */
  preparing: ["reading"],
  /** Changes weights or moments. */
  changing: [],
} as const satisfies Record<string, readonly string[]>

type Kind = keyof typeof beside

/**
 * Readers–writer lock of an engine. The queue of the engine keeps the order of single calls. Work of many calls, such as saving or
 * loading all weights, needs one consistent state of the weights: no work that changes them may run in between, all other work may.
 * Turns are granted in the order of the requests, immediately if possible.
 */
export class Turns {
  readonly #waiting = new Map<() => void, Kind>()
  readonly #held: Record<Kind, number> = { reading: 0, call: 0, preparing: 0, changing: 0 }

  /** Runs one native call that does not change weights. The turn ends when the call is in the engine's queue. */
  async call<T>(start: () => Started<T>, signal?: AbortSignal): Promise<T> {
    const { settled } = await this.#take("call", () => handOver(start, signal), signal)
    return await settled
  }

  /** Runs a call with a longer preparation, which no other call overtakes. `prepare` returns the function that starts the call. */
  async prepared<T>(prepare: () => Promise<() => Started<T>>, signal?: AbortSignal): Promise<T> {
    const { settled } = await this.#take("preparing", async () => handOver(await prepare(), signal), signal)
    return await settled
  }

  /** Runs work that reads weights or moments in any number of calls. */
  async reading<T>(work: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    return await this.#take("reading", work, signal)
  }

  /** Runs work that changes weights or moments in any number of calls. */
  async changing<T>(work: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    return await this.#take("changing", work, signal)
  }

  async #take<T>(kind: Kind, work: () => T | Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    if (this.#waiting.size === 0 && this.#isFree(kind)) this.#held[kind]++
    else await settle(() => this.#wait(kind), signal)
    try {
      return await work()
    } finally {
      this.#held[kind]--
      this.#admit()
    }
  }

  #isFree(kind: Kind): boolean {
    const compatible: readonly string[] = beside[kind]
    for (const other in this.#held) if (this.#held[other as Kind] > 0 && !compatible.includes(other)) return false
    return true
  }

  #wait(kind: Kind): Started<void> {
    let cancel = () => {}
    const promise = new Promise<void>((resolve, reject) => {
      this.#waiting.set(resolve, kind)
      cancel = () => {
        if (!this.#waiting.delete(resolve)) return // the turn was already granted
        reject(new GigpoError("ABORTED", "Stopped."))
        this.#admit()
      }
    })
    return { promise, cancel }
  }

  /** Grants turns at the head of the queue, as far as they are free. A granted turn counts as held before its work starts. */
  #admit(): void {
    for (const [go, kind] of this.#waiting) {
      if (!this.#isFree(kind)) return
      this.#waiting.delete(go)
      this.#held[kind]++
      go()
    }
  }
}

/** Starts a call and returns its promise inside an object, so that the turn does not wait until the call is settled. */
function handOver<T>(start: () => Started<T>, signal: AbortSignal | undefined): { readonly settled: Promise<T> } {
  const settled = settle(start, signal)
  settled.catch(() => {}) // awaited after the turn; avoids an unhandled rejection before that
  return { settled }
}
