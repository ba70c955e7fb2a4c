import timers from "node:timers/promises"

/** Attempts of a request, and the pauses between them. */
export interface Attempts {
  /** Maximum number of attempts. */
  readonly attempts: number
  /** Seconds before the second attempt; twice that before the third, and so on. */
  readonly delay: number
}

/**
 * Repeats work that fails, as long as there are attempts and the failure may pass. Rejects with the last failure, or with the reason of the
 * signal.
 *
 * @param mayPass whether another attempt may succeed after an error. Default: always
 */
export async function withAttempts<T>(
  { attempts, delay }: Attempts,
  signal: AbortSignal,
  work: () => Promise<T>,
  mayPass: (error: unknown) => boolean = () => true,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted()
    try {
      return await work()
    } catch (error) {
      signal.throwIfAborted()
      if (attempt >= attempts || !mayPass(error)) throw error
    }
    await timers.setTimeout(delay * attempt * 1000, undefined, { signal }).catch(() => signal.throwIfAborted())
  }
}
