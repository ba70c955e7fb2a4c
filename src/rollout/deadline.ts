import { setMaxListeners } from "node:events"
import { GigpoError } from "../util/errors.ts"
import { linkAbort, unlessAborted } from "../util/linked-abort.ts"
import { after } from "./time-limit.ts"

// Deadlines of turns, episodes and groups: what is late is aborted, fails, and nobody waits for it, nor hears of it any more.

export type DeadlineName = "turnTimeout" | "episodeTimeout" | "groupTimeout"

/** A deadline has passed: the reason of an abort that costs episodes and not the rollout. */
class Late extends GigpoError {
  constructor(name: DeadlineName, what: string, seconds: number) {
    super("ROLLOUT_TIMEOUT", `${what} took longer than ${seconds} s (rollout.${name}).`)
  }
}

export class Deadline implements Disposable {
  readonly #timers: Partial<Record<DeadlineName, NodeJS.Timeout>> = {}
  readonly #own = new AbortController()
  readonly #late = new AbortController()
  readonly #unlink: () => void

  /** Below another deadline's signal, that one counts as well. */
  constructor(signal: AbortSignal | undefined) {
    const own = this.signal
    setMaxListeners(0, own)
    own.addEventListener("abort", () => own.reason instanceof Late && this.#late.abort(own.reason), { once: true })
    this.#unlink = linkAbort(signal, this.#own)
  }

  /** For the work: aborted with the signal above, or when a deadline passes. */
  get signal(): AbortSignal {
    return this.#own.signal
  }

  /** Of the first deadline that passed. */
  get passed(): GigpoError | undefined {
    return this.#late.signal.reason
  }

  /** From now on so many seconds, in place of what was set under this name; Infinity is no deadline. `what` begins its message. */
  set(name: DeadlineName, what: string, seconds = Number.POSITIVE_INFINITY): void {
    clearTimeout(this.#timers[name])
    if (seconds === Number.POSITIVE_INFINITY) return
    this.#timers[name] = after(seconds * 1000, () => this.#own.abort(new Late(name, what, seconds)))
  }

  /** What `work` gives, or what passed as soon as it does: policies and tokenizers that do not heed the signal hold nothing up. */
  async unlessPassed<T>(work: () => T | Promise<T>): Promise<T> {
    return await unlessAborted(this.#late.signal, work)
  }

  [Symbol.dispose](): void {
    for (const timer of Object.values(this.#timers)) clearTimeout(timer)
    this.#unlink()
  }
}
