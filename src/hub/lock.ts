import { rm, stat, utimes } from "node:fs/promises"
import { setTimeout as sleep } from "node:timers/promises"
import { io } from "../files/io-error.ts"
import { acquireLock, type Lock, releaseLock } from "../files/lock.ts"
import { GigpoError } from "../util/errors.ts"

/** Milliseconds between two looks at a lock that another holds. */
const look = 200
/** Milliseconds after which a holder marks its lock, and after which one that bears no new mark is taken for dead. */
const beat = 15_000
const longest = 120_000

interface Waiting {
  readonly signal: AbortSignal | undefined
  /** Told once where the lock is held. */
  readonly onWait: () => void
  /** Milliseconds without a sign of life after which a holder on another machine is taken for dead; for tests. */
  readonly dead?: number
}

/**
 * Does work that one process does at a time, once the lock at `path` is free. That of a dead process is taken over: at once on this
 * machine, after two minutes without a sign of life on another one that shares the disk.
 *
 * @throws GigpoError `IO`; the reason of the signal; what `work` throws
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
    await releaseLock(lock).catch(() => {}) // a lock that stays is taken over
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

/** State of a lock file, which its holder changes while it lives. */
async function markOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined)
  return found && `${found.ino} ${found.mtimeNs}`
}
