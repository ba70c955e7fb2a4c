import type { Started } from "../../native/native.ts"
import { GigpoError } from "../../util/errors.ts"
import { settle } from "./started.ts"

/** What may go on at the same time, each kind beside the kinds that stand here. */
const beside = {
  /** Reads weights and moments in many calls. */
  reading: ["reading", "call", "preparing"],
  /** One call that changes no weights. */
  call: ["reading", "call"],
  /** Getting such a call ready. Later ones must not overtake it: they may forget its gradients, or read them. */
  preparing: ["reading"],
  /** Changes weights or moments. */
  changing: [],
} as const satisfies Record<string, readonly string[]>

type Kind = keyof typeof beside

/**
 * Whose turn it is at an engine. The engine's own queue keeps the order of single calls; what takes many calls (all weights are read,
 * or written) must meet one state of the weights, so that nothing which changes them comes in between, and all else may. A lock of
 * readers and writers: turns are given in the order in which they were asked for, and one that is free is taken at once.
 */
export class Turns {
  readonly #waiting = new Map<() => void, Kind>()
  readonly #held: Record<Kind, number> = { reading: 0, call: 0, preparing: 0, changing: 0 }

  /** One native call that changes no weights. Its turn ends when it stands in the engine's queue. */
  async call<T>(start: () => Started<T>, signal?: AbortSignal): Promise<T> {
    const { settled } = await this.#take("call", () => handOver(start, signal), signal)
    return await settled
  }

  /** The same of a call that takes a while to prepare; nothing overtakes it meanwhile. `prepare` gives what starts it. */
  async prepared<T>(prepare: () => Promise<() => Started<T>>, signal?: AbortSignal): Promise<T> {
    const { settled } = await this.#take("preparing", async () => handOver(await prepare(), signal), signal)
    return await settled
  }

  /** Work that reads weights or moments, in any number of calls. */
  async reading<T>(work: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    return await this.#take("reading", work, signal)
  }

  /** Work that changes weights or moments, in any number of calls. */
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
    const peaceable: readonly string[] = beside[kind]
    for (const other in this.#held) if (this.#held[other as Kind] > 0 && !peaceable.includes(other)) return false
    return true
  }

  #wait(kind: Kind): Started<void> {
    let cancel = () => {}
    const promise = new Promise<void>((resolve, reject) => {
      this.#waiting.set(resolve, kind)
      cancel = () => {
        if (!this.#waiting.delete(resolve)) return // its turn has come
        reject(new GigpoError("ABORTED", "Stopped."))
        this.#admit()
      }
    })
    return { promise, cancel }
  }

  /** Those at the head of the line that may go. They hold their turns from here on, though they run a little later. */
  #admit(): void {
    for (const [go, kind] of this.#waiting) {
      if (!this.#isFree(kind)) return
      this.#waiting.delete(go)
      this.#held[kind]++
      go()
    }
  }
}

/** In an object, so that a turn does not wait until the call is settled. */
function handOver<T>(start: () => Started<T>, signal: AbortSignal | undefined): { readonly settled: Promise<T> } {
  const settled = settle(start, signal)
  settled.catch(() => {}) // it is waited for once the turn has ended
  return { settled }
}
