/** Milliseconds of work between two looks at the event loop. */
const stretch = 1

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
  #stretches = 0

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
    await turn(++this.#stretches)
    this.signal?.throwIfAborted()
    this.#since = performance.now()
  }
}

interface Waiting {
  /** Stretches that the work has had. */
  readonly stretches: number
  readonly go: () => void
}

const waiting: Waiting[] = []
let turning = false
let shortest = false

/**
 * Turn of the event loop for one stretch of work. However many pieces of work are under way, each turn has one stretch of one of them: else a
 * client with many requests would make every turn long for all others. Every second turn is for the work that has had least, so that short
 * work does not wait for all the long work that came before it; the others are for the work that has waited longest, so that none starves.
 */
async function turn(stretches: number): Promise<void> {
  await new Promise<void>((go) => {
    waiting.push({ stretches, go })
    if (turning) return
    turning = true
    setImmediate(next)
  })
}

function next(): void {
  shortest = !shortest
  let at = 0
  if (shortest)
    for (const [index, { stretches }] of waiting.entries()) if (stretches < waiting[at]!.stretches) at = index
  const [{ go }] = waiting.splice(at, 1) as [Waiting]
  go()
  turning = waiting.length > 0
  if (turning) setImmediate(next)
}
