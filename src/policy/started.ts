import { GigpoError } from "../errors.ts"
import type { Started } from "../native.ts"

/**
 * Waits for native work. Aborting `signal` stops it at its next look up and rejects with the signal's reason.
 */
export async function settle<T>(start: () => Started<T>, signal?: AbortSignal): Promise<T> {
  signal?.throwIfAborted()
  const started = start()
  const cancel = () => started.cancel()
  signal?.addEventListener("abort", cancel, { once: true })
  try {
    return await started.promise
  } catch (error) {
    if (GigpoError.is(error) && error.code === "ABORTED") signal?.throwIfAborted()
    throw error
  } finally {
    signal?.removeEventListener("abort", cancel)
  }
}
