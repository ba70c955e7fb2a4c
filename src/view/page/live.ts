import type { RunStore } from "./run-store.ts"

/** Seconds. */
const [every, slowest, allEvery] = [1, 30, 10]

/**
 * Follows runs that go on, while the page is seen: asks every second, and slower while nobody answers. `trouble` is told in words what
 * is wrong, or undefined when it is well again.
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

/** Until somebody can see the page. */
async function seen(): Promise<void> {
  while (document.hidden)
    await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }))
}
