/**
 * Lets `signal` abort `controller`, until the returned function is called. `AbortSignal.any` leaks memory on long-lived
 * signals in Node 20.
 */
export function linkAbort(signal: AbortSignal | undefined, controller: AbortController): () => void {
  if (!signal) return () => {}
  const abort = () => controller.abort(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener("abort", abort, { once: true })
  return () => signal.removeEventListener("abort", abort)
}

/** Returns a signal that is aborted a time after `signal`, unless it is disposed of before. */
export function delayAbort(
  signal: AbortSignal | undefined,
  milliseconds: number,
): Disposable & { signal: AbortSignal } {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const start = () => {
    timer = setTimeout(() => controller.abort(signal?.reason), milliseconds)
  }
  if (signal?.aborted) start()
  else signal?.addEventListener("abort", start, { once: true })
  const dispose = () => {
    signal?.removeEventListener("abort", start)
    clearTimeout(timer)
  }
  return { signal: controller.signal, [Symbol.dispose]: dispose }
}

/** Awaits `call`, or throws the signal's reason once it is aborted. A later result is dropped. */
export async function unlessAborted<T>(signal: AbortSignal | undefined, call: () => T | Promise<T>): Promise<T> {
  signal?.throwIfAborted()
  let abort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal?.reason)
  })
  signal?.addEventListener("abort", abort, { once: true })
  try {
    return await Promise.race([call(), aborted])
  } finally {
    signal?.removeEventListener("abort", abort)
  }
}
