import { rm, stat, utimes } from "node:fs/promises"
import { setTimeout as sleep } from "node:timers/promises"
import { io } from "../files/io-error.ts"
import { acquireLock, type Lock, releaseLock } from "../files/lock.ts"
import { GigpoError } from "../util/errors.ts"

/** Milliseconds between two looks at a lock that another holds. */
const look = 200
/** Milliseconds after which a holder marks its lock, and after which one that bears no new mark is taken for dead. */
const beat = 15_000
const dead = 120_000

/**
 * Does work that one process does at a time, once the lock at `path` is free. That of a dead process is taken over: at once on this
 * machine, after two minutes without a sign of life on another one that shares the disk.
 *
 * @param onWait - told once where the lock is held.
 * @throws GigpoError `IO`; the reason of the signal; what `work` throws
 */
export async function locked<T>(
  path: string,
  { signal, onWait }: { readonly signal: AbortSignal | undefined; readonly onWait: () => void },
  work: () => Promise<T>,
): Promise<T> {
  const lock = await freed(path, signal, onWait)
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

async function freed(path: string, signal: AbortSignal | undefined, onWait: () => void): Promise<Lock> {
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
