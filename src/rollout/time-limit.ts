import { GigpoError } from "../util/errors.ts"
import { unlessAborted } from "../util/linked-abort.ts"

/** The longest that a timer can run. */
const longestMs = 2 ** 31 - 1

/**
 * What `call` gives, or `ENVIRONMENT_TIMEOUT` once `seconds` are over, or the signal's reason once it is aborted. A result that
 * comes later is dropped.
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

/** A timer, which may be Infinity. */
export function after(milliseconds: number, ring: () => void): NodeJS.Timeout {
  return setTimeout(ring, Math.min(milliseconds, longestMs))
}

/** What `call` gives, or an error once so many milliseconds are over. */
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
