/**
 * Lets `signal` abort `controller` too, until the function that is returned is called. Not `AbortSignal.any`: in Node 20 that
 * leaves something behind on a long-lived signal every time.
 */
export function linkAbort(signal: AbortSignal | undefined, controller: AbortController): () => void {
  if (!signal) return () => {}
  const abort = () => controller.abort(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener("abort", abort, { once: true })
  return () => signal.removeEventListener("abort", abort)
}
