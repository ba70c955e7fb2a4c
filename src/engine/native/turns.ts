import { GigpoError } from "../../errors.ts"
import type { Started } from "../../native.ts"
import { settle } from "./started.ts"

/** Beside others that change no weights, or alone. */
type Kind = "beside" | "alone"

/**
 * Whose turn it is at an engine. The engine's own queue keeps the order of single calls; what takes many calls (all weights are read,
 * or written) must meet one state of the weights, so that nothing which changes them comes in between. A lock of readers and writers:
 * turns are given in the order in which they were asked for, and one that is free is taken at once.
 */
export class Turns {
  readonly #waiting = new Map<() => void, Kind>()
  #beside = 0
  #alone = false

  /** One native call that changes no weights. Its turn ends when it stands in the engine's queue. */
  async call<T>(start: () => Started<T>, signal?: AbortSignal): Promise<T> {
    const { settled } = await this.beside(() => handOver(start, signal), signal)
    return await settled
  }

  /** The same of a call that takes a while to prepare; nothing overtakes it meanwhile. `prepare` gives what starts it. */
  async prepared<T>(prepare: () => Promise<() => Started<T>>, signal?: AbortSignal): Promise<T> {
    const { settled } = await this.alone(async () => handOver(await prepare(), signal), signal)
    return await settled
  }

  /** Work that reads weights, in any number of calls. */
  async beside<T>(work: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    return await this.#take("beside", work, signal)
  }

  /** Work that changes weights, in any number of calls. */
  async alone<T>(work: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    return await this.#take("alone", work, signal)
  }

  async #take<T>(kind: Kind, work: () => T | Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    if (this.#waiting.size === 0 && this.#isFree(kind)) this.#enter(kind)
    else await settle(() => this.#wait(kind), signal)
    try {
      return await work()
    } finally {
      if (kind === "alone") this.#alone = false
      else this.#beside--
      this.#admit()
    }
  }

  #isFree(kind: Kind): boolean {
    return !this.#alone && (kind === "beside" || this.#beside === 0)
  }

  #enter(kind: Kind): void {
    if (kind === "alone") this.#alone = true
    else this.#beside++
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
      this.#enter(kind)
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
