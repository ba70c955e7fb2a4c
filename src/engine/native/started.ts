import type { Started } from "../../native/native.ts"
import { GigpoError } from "../../util/errors.ts"

/**
 * Starts native work and waits for it. After an abort, the work stops at its next check and the call rejects with the signal's reason.
 */
export async function settle<T>(start: () => Started<T>, signal?: AbortSignal): Promise<T> {
  signal?.throwIfAborted()
  const started = start()
  const cancel = () => started.cancel()
  if (signal) listen(signal, cancel)
  try {
    return await started.promise
  } catch (error) {
    if (GigpoError.is(error) && error.code === "ABORTED") signal?.throwIfAborted()
    throw error
  } finally {
    if (signal) stopListening(signal, cancel)
  }
}

// One listener per signal, shared by all calls: Node warns of a leak above ten listeners.
const listeners = new WeakMap<AbortSignal, { readonly calls: Set<() => void>; readonly onAbort: () => void }>()

function listen(signal: AbortSignal, cancel: () => void): void {
  let listener = listeners.get(signal)
  if (!listener) {
    const calls = new Set<() => void>()
    const onAbort = () => {
      for (const call of calls) call()
    }
    listener = { calls, onAbort }
    listeners.set(signal, listener)
    signal.addEventListener("abort", onAbort, { once: true })
  }
  listener.calls.add(cancel)
}

function stopListening(signal: AbortSignal, cancel: () => void): void {
  const listener = listeners.get(signal)
  if (!listener?.calls.delete(cancel) || listener.calls.size > 0) return
  signal.removeEventListener("abort", listener.onAbort)
  listeners.delete(signal)
}
