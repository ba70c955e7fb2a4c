import type { RunStore } from "./run-store.ts"

/** Seconds between requests: normally, at most after failures, and for the list of all runs. */
const [every, slowest, allEvery] = [1, 30, 10]

/**
 * Follows runs in progress while the page is visible. Requests updates every second, and less often after failures. `trouble` receives a
 * description of the failure, and undefined after the next success.
 */
export async function follow(store: RunStore, trouble: (text: string | undefined) => void): Promise<never> {
  let wait = every
  let sinceAll = 0
  for (;;) {
    await seen()
    await new Promise((done) => setTimeout(done, wait * 1000))
    sinceAll += wait
    const waiting = store.runs.length === 0
    const running = store.runs.some(({ state }) => state === "running")
    const all = waiting || sinceAll >= allEvery
    if (!running && !all) continue
    try {
      await store.refresh({ all })
      if (all) sinceAll = 0
      wait = every
      trouble(undefined)
    } catch (error) {
      wait = Math.min(wait * 2, slowest)
      trouble(`Update failed (${error instanceof Error ? error.message : error}). Next attempt in ${wait} s.`)
    }
  }
}

/** Waits until the page is visible. */
async function seen(): Promise<void> {
  while (document.hidden)
    await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }))
}
