import { formatDuration } from "../../util/format.ts"
import { visible } from "../../util/visible.ts"

/** Piece of work in progress. */
export interface Work {
  /** Description. A function is called when the work is shown, and may return undefined to show nothing. */
  what: string | (() => string | undefined)
  /** Start, by `performance.now()`. */
  readonly since: number
  /** Milliseconds without output before the work is announced. */
  patience: number
}

/** Maximum milliseconds between two announcements of one piece of work. */
const longest = 60_000

/**
 * Announcements of what a command is waiting for. Work is announced after a time without output, and again at growing
 * intervals. Work that ends earlier is not announced.
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
   * Starts the announcements.
   *
   * @param what - the command, for work without another description
   * @param seconds - time without output until the first announcement; 0 turns announcements off
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

  /** Describes work while `run` is in progress. Of concurrent works the latest is announced. */
  async during<T>(what: Work["what"], run: () => T | Promise<T>): Promise<T> {
    const work = this.begin(what)
    try {
      return await run()
    } finally {
      this.end(work)
    }
  }

  /** Runs work whose duration depends on a person or a client, without announcements. */
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
   * Records that something was printed.
   *
   * @param covered - whether a redrawn display on the terminal now shows the work. Omit if the caller draws no display.
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

/** Announcements of this process, on standard error, since data go to standard output. */
export const activity: Activity = new Activity((text) => process.stderr.write(text))
