import { GigpoError } from "../util/errors.ts"
import { unlessAborted } from "../util/linked-abort.ts"

/** Maximum duration of a timer in milliseconds. */
const longestMs = 2 ** 31 - 1

/**
 * Waits for `call` with a time limit. Throws `ENVIRONMENT_TIMEOUT` after `seconds`, or the reason of the signal after an abort. A later result is
 * ignored.
 */
export async function withTimeLimit<T>(
  what: string,
  seconds: number,
  signal: AbortSignal | undefined,
  call: () => Promise<T>,
): Promise<T> {
  const tooLate = () =>
    new GigpoError("ENVIRONMENT_TIMEOUT", `${what} took longer than ${seconds} s (rollout.environmentTimeout).`)
  return await unlessAborted(signal, () => unlessLate(seconds * 1000, tooLate, call))
}

/** Starts a timer. Infinity is allowed. */
export function after(milliseconds: number, ring: () => void): NodeJS.Timeout {
  return setTimeout(ring, Math.min(milliseconds, longestMs))
}

/** Waits for `call`, or throws an error after a number of milliseconds. */
export async function unlessLate<T>(
  milliseconds: number,
  tooLate: () => Error,
  call: () => T | Promise<T>,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = after(milliseconds, () => reject(tooLate()))
  })
  try {
    return await Promise.race([call(), late])
  } finally {
    clearTimeout(timer)
  }
}
