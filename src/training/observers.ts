import { setTimeout as sleep } from "node:timers/promises"
import type { Credit } from "../credit/estimator.ts"
import type { Group } from "../rollout/hooks.ts"
import type { RunConfig } from "../runs/config.ts"
import type { IterationReport } from "../runs/report.ts"
import type { CollectedStep } from "./steps.ts"

/** Where a run begins, or goes on. */
export interface RunStart {
  /** Completed iterations. */
  readonly iteration: number
  readonly iterations: number
  /** Its folder, and the configuration that stands there as config.json; absent where nothing is written. */
  readonly directory?: string
  readonly config?: RunConfig
}

/** What a run that ended came to. */
export interface RunOutcome {
  /** Completed iterations. */
  readonly iteration: number
  /** Why it ended before its last one; undefined where it did not. */
  readonly error?: unknown
}

/**
 * Told of a run as it goes, after each iteration is on disk. It cannot hold up or break the run: what it throws, or is too slow
 * for, is one warning.
 */
export interface RunObserver {
  readonly name?: string
  start?(run: RunStart): unknown
  /**
   * Episodes of an iteration, and the estimator's advantages of their steps.
   *
   * @param credit advantages and details, [steps]
   * @param steps the steps in the order of `credit`, with the rewards that the estimator read: `steps[i].task` is the place of its group
   * in `groups`, and `steps[i].episode` that of its episode in the group. Failed and dropped episodes, and groups that are not learned
   * from, have none.
   */
  episodes?(iteration: number, groups: readonly Group[], credit: Credit, steps: readonly CollectedStep[]): unknown
  report?(report: IterationReport): unknown
  end?(outcome: RunOutcome): unknown
}

type Told = Omit<Required<RunObserver>, "name">

/** Calls that wait for an observer; more are left out. */
const longestQueue = 32
/** Seconds that observers have to catch up when the run is over. */
const patience = 10

/** Tells all observers, each in its own time. */
export class Observers {
  readonly #queues: readonly Queue[]

  constructor(observers: readonly RunObserver[], onWarning: (message: string) => void) {
    this.#queues = observers.map((observer) => new Queue(observer, onWarning))
  }

  tell<Event extends keyof Told>(event: Event, ...about: Parameters<Told[Event]>): void {
    for (const queue of this.#queues) queue.add(event, about)
  }

  /** Waits until all have heard everything, but not for ever. */
  async settle(): Promise<void> {
    await Promise.all(this.#queues.map((queue) => queue.settle()))
  }
}

class Queue {
  readonly #observer: RunObserver
  readonly #onWarning: (message: string) => void
  #waiting = 0
  #last: Promise<void> = Promise.resolve()
  #warned = false

  constructor(observer: RunObserver, onWarning: (message: string) => void) {
    this.#observer = observer
    this.#onWarning = onWarning
  }

  add<Event extends keyof Told>(event: Event, about: Parameters<Told[Event]>): void {
    const listen = this.#observer[event] as ((...about: unknown[]) => unknown) | undefined
    if (!listen) return
    if (this.#waiting >= longestQueue && event !== "end") {
      this.#warn("is too slow; it was not told of everything.")
      return
    }
    this.#waiting++
    this.#last = this.#last.then(async () => {
      try {
        await listen.apply(this.#observer, about)
      } catch (error) {
        const why = String(error instanceof Error ? error.message : error).replace(/\.$/, "")
        this.#warn(`threw in ${event}(): ${why}. The run goes on.`)
      } finally {
        this.#waiting--
      }
    })
  }

  async settle(): Promise<void> {
    if (this.#waiting === 0) return
    const late = new AbortController()
    const limit = sleep(1000 * patience, "late", { signal: late.signal }).catch(() => undefined)
    if ((await Promise.race([this.#last, limit])) === "late")
      this.#warn(`was still at work ${patience} s after the run's end.`)
    late.abort()
  }

  #warn(what: string): void {
    if (!this.#warned) this.#onWarning(`The observer ${this.#observer.name ?? "without a name"} ${what}`)
    this.#warned = true
  }
}
