import { formatDuration } from "../../util/format.ts"
import { visible } from "../../util/visible.ts"

/** Piece of work under way. */
export interface Work {
  /** Its description; one that is a function is asked when it is shown, and may have nothing to say then. */
  what: string | (() => string | undefined)
  /** `performance.now()` when it began. */
  readonly since: number
  /** Milliseconds of silence until it is shown. */
  patience: number
}

/** Most milliseconds between two messages of one piece of work. */
const longest = 60_000

/**
 * Messages on what a command is waiting for. Work is announced once nothing has been printed for some time, and again at growing
 * intervals. What ends before that is never mentioned.
 */
export class Activity {
  readonly #write: (text: string) => void
  #patience = 0
  #timer: NodeJS.Timeout | undefined
  #works: Work[] = []
  #printed = 0
  #idle = 0
  #covered = false

  constructor(write: (text: string) => void) {
    this.#write = write
  }

  /**
   * Begins to watch.
   *
   * @param what the command, for work that nothing else describes
   * @param seconds of silence until the first message; 0 turns messages off
   */
  start(what: string, seconds: number): void {
    this.stop()
    if (seconds === 0) return
    this.#patience = seconds * 1000
    this.#printed = performance.now()
    this.begin(what)
    this.#timer = setInterval(() => this.#look(), Math.min(this.#patience / 4, 500)).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#works = []
  }

  begin(what: Work["what"]): Work {
    const work: Work = { what, since: performance.now(), patience: this.#patience }
    this.#works.push(work)
    return work
  }

  end(work: Work | undefined): void {
    this.#works = this.#works.filter((one) => one !== work)
  }

  /** Describes work while it lasts. Of works side by side the one that began last is shown. */
  async during<T>(what: Work["what"], run: () => T | Promise<T>): Promise<T> {
    const work = this.begin(what)
    try {
      return await run()
    } finally {
      this.end(work)
    }
  }

  /** Runs what takes as long as a person or a client wants, which is not announced. */
  async idle<T>(run: () => T | Promise<T>): Promise<T> {
    this.#idle++
    try {
      return await run()
    } finally {
      this.#idle--
      this.#printed = performance.now()
    }
  }

  /**
   * Something was printed.
   *
   * @param covered whether a display that is redrawn now stands on the terminal, which tells of the work itself; left out by what
   * draws none
   */
  printed(covered: boolean = this.#covered): void {
    this.#printed = performance.now()
    this.#covered = covered
  }

  #look(): void {
    if (this.#covered || this.#idle > 0) return
    const now = performance.now()
    for (const work of this.#works.toReversed()) {
      const text = typeof work.what === "string" ? work.what : work.what()
      if (text === undefined) continue
      if (now - this.#printed < work.patience) return
      work.patience = Math.min(2 * work.patience, longest)
      this.#printed = now
      this.#write(`Waiting (${formatDuration((now - work.since) / 1000)}): ${visible(text)}.\n`)
      return
    }
  }
}

/** Of this process. Data goes to standard output, so messages go to standard error. */
export const activity: Activity = new Activity((text) => process.stderr.write(text))
