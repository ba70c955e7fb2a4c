import { setImmediate } from "node:timers/promises"

/** Milliseconds of work between two looks at the event loop. */
const stretch = 4

/** Keeps long work from blocking the event loop: `if (pace.due()) await pace.rest()`. */
export class Pace {
  readonly #signal: AbortSignal | undefined
  #since = performance.now()

  constructor(signal?: AbortSignal) {
    this.#signal = signal
  }

  due(): boolean {
    return performance.now() - this.#since >= stretch
  }

  /** Lets others work. Throws the signal's reason once it is aborted. */
  async rest(): Promise<void> {
    this.#signal?.throwIfAborted()
    await setImmediate()
    this.#signal?.throwIfAborted()
    this.#since = performance.now()
  }
}
