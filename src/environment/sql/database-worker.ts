import type { Resolved } from "../../options/table.ts"
import type { SqlAnswer } from "./answer.ts"
import { DatabaseProcess } from "./database-process.ts"
import type { sqlLimitFields } from "./limits.ts"
import type { ProcessRequest } from "./process-source.ts"

/** Seconds after which a process that nobody asks anything is ended; the next query starts another. */
export const idleTime = 10

type Limits = Pick<Resolved<typeof sqlLimitFields>, "timeLimit" | "memoryLimit">

/** Answers one query at a time, in a process that it starts when it needs one and that outlives none that takes too long or too much. */
export class DatabaseWorker {
  readonly #limits: Limits
  #process: DatabaseProcess | undefined
  #idle: NodeJS.Timeout | undefined

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Rejects as the process's `ready` does, and with the signal's reason, once the process has ended for it. */
  async query(request: ProcessRequest, signal: AbortSignal): Promise<SqlAnswer> {
    clearTimeout(this.#idle)
    const abort = () => void this.end()
    signal.addEventListener("abort", abort, { once: true })
    try {
      return await this.#query(request, signal)
    } catch (error) {
      await this.end()
      throw error
    } finally {
      signal.removeEventListener("abort", abort)
      this.#process?.hold(false)
      this.#idle = setTimeout(() => void this.end(), idleTime * 1000).unref()
    }
  }

  async #query(request: ProcessRequest, signal: AbortSignal): Promise<SqlAnswer> {
    const { timeLimit, memoryLimit } = this.#limits
    for (;;) {
      signal.throwIfAborted()
      if (!this.#process || this.#process.dead) this.#process = new DatabaseProcess(memoryLimit)
      const process = this.#process
      process.hold(true)
      const { used } = process
      let late = false
      let timer: NodeJS.Timeout | undefined
      try {
        await process.ready
        timer = setTimeout(() => {
          late = true
          void process.end()
        }, timeLimit * 1000)
        const answer = await process.answer(request)
        if (answer) return answer
      } catch (error) {
        throw signal.aborted ? signal.reason : error
      } finally {
        clearTimeout(timer)
      }
      signal.throwIfAborted()
      if (late) return { error: `the query took longer than ${timeLimit} s` }
      // One that was used may have died of what came before, or at rest: what a query gives must not depend on that.
      if (!used) return { error: `the query took more than ${memoryLimit} MiB` }
    }
  }

  /** Resolves when nothing of it runs. What it was asked gives nothing, so its signal is aborted before. */
  async end(): Promise<void> {
    clearTimeout(this.#idle)
    await this.#process?.end()
  }
}
