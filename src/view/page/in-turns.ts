/** Milliseconds of work at a stretch: frames stay under 50 with what the browser makes of it. */
export const stretch = 8

/** Does much without keeping the page from answering: a stretch at a time, until it is done or the view is left. */
export async function inTurns(jobs: Iterable<() => void>, signal: AbortSignal): Promise<void> {
  let begun = performance.now()
  for (const job of jobs) {
    if (signal.aborted) return
    job()
    if (performance.now() - begun < stretch) continue
    await new Promise((resolve) => setTimeout(resolve))
    begun = performance.now()
  }
}
