import type { OptionsOf } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import { linkAbort } from "../../util/linked-abort.ts"
import { readOptions } from "../options.ts"
import type { SqlAnswer, SqlResult } from "./answer.ts"
import { DatabaseWorker } from "./database-worker.ts"
import { sqlLimitFields } from "./limits.ts"
import type { ProcessRequest, SqlDatabase } from "./process-source.ts"
import { readOnlyProblem } from "./read-only.ts"

export type { SqlDatabase } from "./process-source.ts"
/** Limits of one SQL query. */
export type SqlLimits = OptionsOf<typeof sqlLimitFields>

/**
 * Read-only SQLite databases for untrusted statements. Statements run in separate processes, which are ended if a statement exceeds its
 * limits of time or memory. Processes start on demand, end when idle, and do not keep a program from exiting. Disposal ends all processes;
 * pending queries reject with `DISPOSED`.
 */
export class SqlDatabases implements AsyncDisposable {
  readonly #workers: readonly DatabaseWorker[]
  readonly #idle: DatabaseWorker[]
  readonly #waiting = new Set<(worker: DatabaseWorker) => void>()
  readonly #controllers = new Set<AbortController>()
  #disposed: GigpoError | undefined

  /** Throws `BAD_CONFIG` for invalid options. */
  constructor(limits: SqlLimits = {}) {
    const { processes, ...each } = readOptions("databases", limits, sqlLimitFields)
    this.#workers = Array.from({ length: processes }, () => new DatabaseWorker(each))
    this.#idle = [...this.#workers]
  }

  /** Checks that SQLite is available; rejects with `BAD_CONFIG` if not. */
  async check(): Promise<void> {
    await this.query({ script: "" }, "SELECT 1")
  }

  /**
   * Executes a statement and returns its rows, or an `error` if the statement writes, is not valid SQL or exceeds a limit. Rejects with
   * `BAD_CONFIG` without SQLite, `BAD_DATA` if the database cannot be opened, `ENVIRONMENT_FAILED`, `DISPOSED`, or the signal's reason,
   * after the statement has ended.
   */
  async query(
    database: SqlDatabase,
    sql: string,
    signal?: AbortSignal,
  ): Promise<SqlResult | { readonly error: string }> {
    signal?.throwIfAborted()
    if (this.#disposed) throw this.#disposed
    const problem = readOnlyProblem(sql)
    if (problem !== undefined) return { error: problem }
    const controller = new AbortController()
    const unlink = linkAbort(signal, controller)
    this.#controllers.add(controller)
    try {
      const answer = await this.#ask({ database, sql }, controller.signal)
      if (!("failure" in answer)) return answer
      const name = "file" in database ? database.file : "a database's script"
      throw new GigpoError("BAD_DATA", `SQLite cannot open ${name}: ${answer.failure}.`)
    } finally {
      this.#controllers.delete(controller)
      unlink()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed ??= new GigpoError("DISPOSED", "These databases were disposed.")
    for (const controller of this.#controllers) controller.abort(this.#disposed)
    await Promise.all(this.#workers.map((worker) => worker.end()))
  }

  async #ask(request: ProcessRequest, signal: AbortSignal): Promise<SqlAnswer> {
    const worker = this.#idle.pop() ?? (await this.#nextFree(signal))
    try {
      return await worker.query(request, signal)
    } finally {
      const [next] = this.#waiting
      if (next) next(worker)
      else this.#idle.push(worker)
    }
  }

  /** Waits for a free worker, in order of arrival. Rejects if the signal is aborted. */
  async #nextFree(signal: AbortSignal): Promise<DatabaseWorker> {
    return await new Promise((resolve, reject) => {
      const abort = () => {
        this.#waiting.delete(take)
        reject(signal.reason)
      }
      const take = (worker: DatabaseWorker) => {
        this.#waiting.delete(take)
        signal.removeEventListener("abort", abort)
        resolve(worker)
      }
      this.#waiting.add(take)
      signal.addEventListener("abort", abort, { once: true })
    })
  }
}
