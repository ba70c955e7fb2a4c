import { setTimeout as sleep } from "node:timers/promises"
import type { Credit } from "../credit/estimator.ts"
import type { Group } from "../rollout/hooks.ts"
import type { RunConfig } from "../runs/config.ts"
import type { IterationReport } from "../runs/report.ts"
import type { CollectedStep } from "./steps.ts"

/** Start or resumption of a run, as observers receive it. */
export interface RunStart {
  /** Number of completed iterations. */
  readonly iteration: number
  /** Number of iterations of the whole run. */
  readonly iterations: number
  /** Folder of the run. Absent if the training has no run. */
  readonly directory?: string
  /** Content of config.json in the folder. Absent if the training has no run. */
  readonly config?: RunConfig
}

/** End of a run, as observers receive it. */
export interface RunOutcome {
  /** Number of completed iterations. */
  readonly iteration: number
  /** Error that ended the run; undefined if the run ended without an error. */
  readonly error?: unknown
}

/**
 * Observer (callback) of a run. Calls are made after each iteration is on disk, and do not delay or end the run: an observer that throws or
 * is too slow causes one warning.
 */
export interface RunObserver {
  /** Name, for warnings. */
  readonly name?: string
  /** Called when the run starts or is resumed. */
  start?(run: RunStart): unknown
  /**
   * Called with the episodes of an iteration and the advantages of their steps.
   *
   * @param credit - advantages and details of the estimator, [steps].
   * @param steps - steps in the order of `credit`, with the rewards that the estimator read. `steps[i].task` is the index of the group in
   * `groups`, and `steps[i].episode` the index of the episode in the group. Failed and excluded episodes, and groups that are not trained
   * on, have no steps here.
   */
  episodes?(iteration: number, groups: readonly Group[], credit: Credit, steps: readonly CollectedStep[]): unknown
  /**
   * Called with the episodes of an evaluation on held-out tasks.
   *
   * @param iteration - number of completed iterations; 0 for the evaluation before the first.
   * @param groups - groups of one episode, one for each task.
   */
  evaluation?(iteration: number, groups: readonly Group[]): unknown
  /** Called with the report of an iteration. A report may repeat with an evaluation that was missing. */
  report?(report: IterationReport): unknown
  /** Called when the run ends. */
  end?(outcome: RunOutcome): unknown
}

type Events = Omit<Required<RunObserver>, "name">

/** Maximum number of queued calls of an observer; further calls are skipped. */
const longestQueue = 32
/** Seconds that observers have to finish after the end of the run. */
const patience = 10

/** Calls of all observers, with a queue for each. */
export class Observers {
  readonly #queues: readonly Queue[]

  constructor(observers: readonly RunObserver[], onWarning: (message: string) => void) {
    this.#queues = observers.map((observer) => new Queue(observer, onWarning))
  }

  tell<Event extends keyof Events>(event: Event, ...about: Parameters<Events[Event]>): void {
    for (const queue of this.#queues) queue.add(event, about)
  }

  /** Waits until all queues are empty, with a time limit. */
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

  add<Event extends keyof Events>(event: Event, about: Parameters<Events[Event]>): void {
    const listen = this.#observer[event] as ((...about: unknown[]) => unknown) | undefined
    if (!listen) return
    if (this.#waiting >= longestQueue && event !== "end") {
      this.#warn("is too slow; some calls were skipped.")
      return
    }
    this.#waiting++
    this.#last = this.#last.then(async () => {
      try {
        await listen.apply(this.#observer, about)
      } catch (error) {
        const why = String(error instanceof Error ? error.message : error).replace(/\.$/, "")
        this.#warn(`threw in ${event}(): ${why}. The run continues.`)
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
      this.#warn(`had not finished ${patience} s after the end of the run.`)
    late.abort()
  }

  #warn(what: string): void {
    if (!this.#warned) this.#onWarning(`The observer ${this.#observer.name ?? "without a name"} ${what}`)
    this.#warned = true
  }
}
