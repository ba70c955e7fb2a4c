/** Milliseconds of work without a pause. Frames stay below 50 ms including the browser's layout. */
export const stretch = 8

/** Runs many jobs with pauses, so that the page stays responsive. Stops when `signal` is aborted. */
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
