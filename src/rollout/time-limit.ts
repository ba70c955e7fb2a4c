import { GigpoError } from "../errors.ts"

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
  signal?.throwIfAborted()
  let timer: NodeJS.Timeout | undefined
  let abort: (() => void) | undefined
  const limit = new Promise<never>((_, reject) => {
    const late = () =>
      reject(
        new GigpoError("ENVIRONMENT_TIMEOUT", `${what} took longer than ${seconds} s (rollout.environmentTimeout).`),
      )
    timer = setTimeout(late, Math.min(seconds * 1000, longestMs))
    abort = () => reject(signal?.reason)
    signal?.addEventListener("abort", abort, { once: true })
  })
  try {
    return await Promise.race([call(), limit])
  } finally {
    clearTimeout(timer)
    if (abort) signal?.removeEventListener("abort", abort)
  }
}
