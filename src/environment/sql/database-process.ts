import { type ChildProcess, spawn } from "node:child_process"
import { GigpoError } from "../../util/errors.ts"
import type { SqlAnswer } from "./answer.ts"
import { type ProcessMessage, type ProcessRequest, processSource } from "./process-source.ts"

/** One process that answers one query at a time, for as long as it lives. */
export class DatabaseProcess {
  readonly #child: ChildProcess
  /** Rejects with `BAD_CONFIG` where there is no SQLite, `ENVIRONMENT_FAILED` where the process cannot be started. */
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
    // Nothing of this process's surroundings: it runs what somebody else has written.
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
        reject(failed(`its process ended with ${signal ?? code} before it began`))
        this.#settle()
        ended()
      })
    })
    this.ready.catch(() => {}) // told to those who ask
  }

  /** It has ended, or was told to. */
  get dead(): boolean {
    const { killed, exitCode, signalCode } = this.#child
    return killed || exitCode !== null || signalCode !== null
  }

  /** Whether it was asked before: what it died of need not be the query that it was asked last. */
  get used(): boolean {
    return this.#used
  }

  /** Of a process that is ready; undefined where it ends instead. */
  async answer(request: ProcessRequest): Promise<SqlAnswer | undefined> {
    this.#used = true
    return await new Promise((resolve) => {
      this.#settle = resolve
      if (this.dead) resolve(undefined)
      else this.#child.send(request, (error) => error && this.#child.kill("SIGKILL"))
    })
  }

  /** Whether the program waits for it. */
  hold(holds: boolean): void {
    const how = holds ? "ref" : "unref"
    this.#child[how]()
    this.#child.channel?.[how]()
  }

  /** Resolves when it has ended. */
  async end(): Promise<void> {
    this.hold(true)
    this.#child.kill("SIGKILL")
    await this.#ended
  }
}

function noDriver(missing: string): GigpoError {
  const remedy = "install better-sqlite3 (npm install better-sqlite3), or use a Node with node:sqlite (22.16 or later)"
  return new GigpoError("BAD_CONFIG", `There is no SQLite here: ${remedy}. ${missing}.`)
}

function failed(what: string, cause?: unknown): GigpoError {
  return new GigpoError("ENVIRONMENT_FAILED", `A database failed: ${what}.`, { cause })
}
