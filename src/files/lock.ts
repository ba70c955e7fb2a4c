import { createHash, randomBytes } from "node:crypto"
import { rm, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import { setTimeout as sleep } from "node:timers/promises"
import { GigpoError } from "../util/errors.ts"
import { replaceFile } from "./atomic-file.ts"
import { io, ioError, isSystemError } from "./io-error.ts"
import { bootId, isRunning, startOf } from "./process-id.ts"
import { readIfThere, readRegular } from "./regular-file.ts"

/** Exclusive right of a process to write in a folder. */
export interface Lock {
  readonly path: string
  /** Content of the lock file while the lock is held. */
  readonly text: string
}

interface Holder {
  readonly pid: number
  readonly host: string
  /** Boot of the machine and start of the process, if the system reports them: process ids are reused. */
  readonly boot: string | undefined
  readonly started: string | undefined
}

/**
 * Creates the lock file at `path`, or takes it over from a dead process. A holder on another machine counts as alive.
 *
 * @throws GigpoError `RUN_LOCKED` if the holder is alive, `IO`.
 */
export async function acquireLock(path: string): Promise<Lock> {
  const lock = newLock(path)
  for (;;) {
    try {
      await writeFile(path, lock.text, { flag: "wx", flush: true })
      return lock
    } catch (cause) {
      if (!(isSystemError(cause) && cause.code === "EEXIST")) throw ioError("create", path, cause)
    }
    const found = await readLock(path)
    if (found === undefined) continue
    const holder = parseHolder(found)
    if (holder !== undefined && isAlive(holder)) throw locked(path, holder)
    // Several processes may find the same dead lock. The holder of a lock named after it may replace it.
    const right = await acquireLock(`${path}.${createHash("sha256").update(found).digest("hex").slice(0, 12)}`)
    try {
      if ((await readLock(path)) !== found) continue
      await replaceFile(path, lock.text)
      return lock
    } finally {
      await releaseLock(right)
    }
  }
}

/** Whether a live process holds the lock at `path`; a process on another machine counts as alive. */
export async function isHeld(path: string): Promise<boolean> {
  const holder = parseHolder((await readLock(path)) ?? "")
  return holder !== undefined && isAlive(holder)
}

/** Lock that is held once its text is at its path. */
export function newLock(path: string): Lock {
  const holder = { pid: process.pid, host: hostname(), boot: bootId(), started: startOf(process.pid) }
  return { path, text: `${JSON.stringify({ ...holder, token: randomBytes(8).toString("hex") })}\n` }
}

/** Releases the lock, unless another process has taken it over. */
export async function releaseLock(lock: Lock): Promise<void> {
  const found = await readIfThere(lock.path)
  if (found === lock.text) await io("remove", lock.path, rm(lock.path, { force: true }))
}

/** Text of a lock, or undefined if it was just removed. Waits for a lock that is being written. */
async function readLock(path: string): Promise<string | undefined> {
  for (let attempt = 0; ; attempt++) {
    try {
      const text = await readRegular(path)
      if (text.endsWith("\n") || attempt === 5) return text
    } catch (cause) {
      if (isSystemError(cause) && cause.code === "ENOENT") return undefined
      throw isSystemError(cause) ? ioError("read", path, cause) : cause
    }
    await sleep(50)
  }
}

function isAlive({ pid, host, boot, started }: Holder): boolean {
  if (host !== hostname()) return true
  if (boot !== undefined && boot !== bootId()) return false
  if (!isRunning(pid)) return false
  return started === undefined || started === startOf(pid)
}

/** Undefined for a lock file that a crash left incomplete. */
function parseHolder(text: string): Holder | undefined {
  try {
    const { pid, host, boot, started } = JSON.parse(text)
    return Number.isSafeInteger(pid) && typeof host === "string" ? { pid, host, boot, started } : undefined
  } catch {
    return undefined
  }
}

function locked(path: string, { pid, host }: Holder): GigpoError {
  return new GigpoError(
    "RUN_LOCKED",
    `Process ${pid} on ${host} is using this run folder (${path}). Wait for it or stop it; if that process no longer ` +
      "exists, remove that file.",
  )
}
