import { setMaxListeners } from "node:events"
import { GigpoError } from "../util/errors.ts"
import { linkAbort, unlessAborted } from "../util/linked-abort.ts"
import { after } from "./time-limit.ts"

// Deadlines of turns, episodes and groups. Late work is aborted and fails; its result is not awaited and is ignored.

export type DeadlineName = "turnTimeout" | "episodeTimeout" | "groupTimeout"

/** Error for a deadline that has passed: it fails episodes, but does not end the rollout. */
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

  /** Creates a deadline. An abort of the given signal, which may be that of another deadline, counts as well. */
  constructor(signal: AbortSignal | undefined) {
    const own = this.signal
    setMaxListeners(0, own)
    own.addEventListener("abort", () => own.reason instanceof Late && this.#late.abort(own.reason), { once: true })
    this.#unlink = linkAbort(signal, this.#own)
  }

  /** Signal for the work: aborted with the outer signal, or when a deadline passes. */
  get signal(): AbortSignal {
    return this.#own.signal
  }

  /** Error of the first deadline that passed. */
  get passed(): GigpoError | undefined {
    return this.#late.signal.reason
  }

  /** Sets a deadline in seconds from now, and replaces the previous one of this name. Infinity is no deadline. `what` starts the message. */
  set(name: DeadlineName, what: string, seconds = Number.POSITIVE_INFINITY): void {
    clearTimeout(this.#timers[name])
    if (seconds === Number.POSITIVE_INFINITY) return
    this.#timers[name] = after(seconds * 1000, () => this.#own.abort(new Late(name, what, seconds)))
  }

  /** Waits for `work` or the deadline, whichever is first, so that policies and tokenizers that ignore the signal do not delay the rollout. */
  async unlessPassed<T>(work: () => T | Promise<T>): Promise<T> {
    return await unlessAborted(this.#late.signal, work)
  }

  [Symbol.dispose](): void {
    for (const timer of Object.values(this.#timers)) clearTimeout(timer)
    this.#unlink()
  }
}
