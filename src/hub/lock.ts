import { rm, stat, utimes } from "node:fs/promises"
import { setTimeout as sleep } from "node:timers/promises"
import { io } from "../files/io-error.ts"
import { acquireLock, type Lock, releaseLock } from "../files/lock.ts"
import { GigpoError } from "../util/errors.ts"

/** Milliseconds between two checks of a lock that another process holds. */
const look = 200
/** Milliseconds between two updates of the modification time of a held lock. */
const beat = 15_000
/** Milliseconds without such an update after which a lock is stale. */
const longest = 120_000

interface Waiting {
  readonly signal: AbortSignal | undefined
  /** Called once if another process holds the lock. */
  readonly onWait: () => void
  /** Milliseconds without an update after which the lock of another machine is stale. Default 120 000; other values are for tests. */
  readonly dead?: number
}

/**
 * Runs `work` while holding the lock at `path`, which one process at a time can hold. The lock of a dead process is taken over: immediately
 * if it ran on this machine, and after two minutes without an update if it ran on another machine that shares the disk.
 *
 * @throws GigpoError `IO`; the reason of the signal; errors of `work`
 */
export async function locked<T>(path: string, waiting: Waiting, work: () => Promise<T>): Promise<T> {
  const lock = await freed(path, waiting)
  const timer = setInterval(() => {
    const now = new Date()
    utimes(path, now, now).catch(() => {})
  }, beat).unref()
  try {
    return await work()
  } finally {
    clearInterval(timer)
    await releaseLock(lock).catch(() => {}) // A lock that is left behind is taken over.
  }
}

async function freed(path: string, { signal, onWait, dead = longest }: Waiting): Promise<Lock> {
  let [mark, since] = [await markOf(path), performance.now()]
  for (let waits = 0; ; waits++) {
    signal?.throwIfAborted()
    try {
      return await acquireLock(path)
    } catch (error) {
      if (!GigpoError.is(error) || error.code !== "RUN_LOCKED") throw error
    }
    if (waits === 0) onWait()
    const now = await markOf(path)
    if (now !== mark) [mark, since] = [now, performance.now()]
    else if (performance.now() - since > dead) await io("remove", path, rm(path, { force: true }))
    await sleep(look)
  }
}

/** Returns the state of a lock file, which its holder changes at regular intervals. */
async function markOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined)
  return found && `${found.ino} ${found.mtimeNs}`
}
