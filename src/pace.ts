import { setImmediate } from "node:timers/promises"

/** Milliseconds of work between two looks at the event loop. */
const stretch = 2

/** Work in pieces, which may be interrupted where it yields. */
export type Pieces<T> = Generator<undefined, T, undefined>

/** Does it in one go. */
export function atOnce<T>(pieces: Pieces<T>): T {
  for (;;) {
    const { done, value } = pieces.next()
    if (done) return value
  }
}

/** Keeps long work from blocking the event loop: `if (pace.due()) await pace.rest()`. */
export class Pace {
  readonly signal: AbortSignal | undefined
  #since = performance.now()

  constructor(signal?: AbortSignal) {
    this.signal = signal
  }

  due(): boolean {
    return performance.now() - this.#since >= stretch
  }

  /** Does all pieces, and lets others work between them. */
  async through<T>(pieces: Pieces<T>): Promise<T> {
    for (;;) {
      const { done, value } = pieces.next()
      if (done) return value
      if (this.due()) await this.rest()
    }
  }

  /** Lets others work. Throws the signal's reason once it is aborted. */
  async rest(): Promise<void> {
    this.signal?.throwIfAborted()
    await setImmediate()
    this.signal?.throwIfAborted()
    this.#since = performance.now()
  }
}
