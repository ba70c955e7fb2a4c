import type { ResolvedOf } from "../../options/table.ts"
import type { SqlAnswer } from "./answer.ts"
import { DatabaseProcess } from "./database-process.ts"
import type { sqlLimitFields } from "./limits.ts"
import type { ProcessRequest } from "./process-source.ts"

/** Seconds after which an idle process is ended; the next query starts another one. */
export const idleTime = 10

type Limits = Pick<ResolvedOf<typeof sqlLimitFields>, "timeLimit" | "memoryLimit">

/** Executes one query at a time in a process, which is started on demand and ended when a query exceeds a limit. */
export class DatabaseWorker {
  readonly #limits: Limits
  #process: DatabaseProcess | undefined
  #idle: NodeJS.Timeout | undefined

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Executes a query. Rejects as the process's `ready` does, and with the signal's reason after the process has ended. */
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
      // A used process may have ended because of an earlier query, on which the result must not depend. So the query is repeated.
      if (!used) return { error: `the query took more than ${memoryLimit} MiB` }
    }
  }

  /** Ends the process; resolves when it has ended. Abort the signal of a pending query first. */
  async end(): Promise<void> {
    clearTimeout(this.#idle)
    await this.#process?.end()
  }
}
