import { type ChildProcess, spawn } from "node:child_process"
import { GigpoError } from "../../util/errors.ts"
import type { SqlAnswer } from "./answer.ts"
import { type ProcessMessage, type ProcessRequest, processSource } from "./process-source.ts"

/** Process that executes one query at a time. */
export class DatabaseProcess {
  readonly #child: ChildProcess
  /** Resolves when the process accepts queries. Rejects with `BAD_CONFIG` without SQLite, `ENVIRONMENT_FAILED` if the start fails. */
  readonly ready: Promise<void>
  readonly #ended: Promise<void>
  #settle: (answer?: SqlAnswer) => void = () => {}
  #used = false

  /** `memoryLimit` in MiB. */
  constructor(memoryLimit: number) {
    const args = [
      `--max-old-space-size=${memoryLimit}`,
      "-e",
      processSource,
      import.meta.url,
      `${memoryLimit * 2 ** 20}`,
    ]
    // No environment variables, because the process executes untrusted SQL.
    const child = spawn(process.execPath, args, {
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      serialization: "advanced",
      env: {},
    })
    this.#child = child
    let ended = () => {}
    this.#ended = new Promise((resolve) => {
      ended = resolve
    })
    this.ready = new Promise((resolve, reject) => {
      child.on("message", (message: ProcessMessage) => {
        if ("answer" in message) this.#settle(message.answer)
        else if ("ready" in message) resolve()
        else reject(noDriver(message.missing))
      })
      child.on("error", (cause) => {
        reject(failed(`its process could not be started (${cause.message})`, cause))
        if (child.pid === undefined) ended()
      })
      child.on("exit", (code, signal) => {
        reject(failed(`its process ended with ${signal ?? code} during its start`))
        this.#settle()
        ended()
      })
    })
    this.ready.catch(() => {}) // no unhandled rejection; callers await `ready`
  }

  /** Whether the process has ended or was killed. */
  get dead(): boolean {
    const { killed, exitCode, signalCode } = this.#child
    return killed || exitCode !== null || signalCode !== null
  }

  /** Whether the process has executed a query before. If so, the last query need not be the reason of its end. */
  get used(): boolean {
    return this.#used
  }

  /** Executes a query. Requires `ready`. Resolves to undefined if the process ends instead. */
  async answer(request: ProcessRequest): Promise<SqlAnswer | undefined> {
    this.#used = true
    return await new Promise((resolve) => {
      this.#settle = resolve
      if (this.dead) resolve(undefined)
      else this.#child.send(request, (error) => error && this.#child.kill("SIGKILL"))
    })
  }

  /** Sets whether the process keeps this program from exiting. */
  hold(holds: boolean): void {
    const how = holds ? "ref" : "unref"
    this.#child[how]()
    this.#child.channel?.[how]()
  }

  /** Kills the process; resolves when it has ended. */
  async end(): Promise<void> {
    this.hold(true)
    this.#child.kill("SIGKILL")
    await this.#ended
  }
}

function noDriver(missing: string): GigpoError {
  const remedy = "install better-sqlite3 (npm install better-sqlite3), or use a Node with node:sqlite (22.16 or later)"
  return new GigpoError("BAD_CONFIG", `SQLite is not available: ${remedy}. ${missing}.`)
}

function failed(what: string, cause?: unknown): GigpoError {
  return new GigpoError("ENVIRONMENT_FAILED", `A database failed: ${what}.`, { cause })
}
