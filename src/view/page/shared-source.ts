import { baseRun, type EpisodePage, type Source } from "../data/source.ts"
import type { RunStore } from "./run-store.ts"

/**
 * Source that caches the episodes of a run until the run changes, so that views do not request them repeatedly. Requests with a cursor are
 * not cached.
 */
export function sharedSource(source: Source, store: RunStore): Source {
  const requests = new Map<string, { readonly when: string; readonly page: Promise<EpisodePage | undefined> }>()
  return {
    ...source,
    episodes(run, cursor, signal) {
      if (cursor !== undefined) return source.episodes(run, cursor, signal)
      const when = JSON.stringify(store.runs.find(({ id }) => id === baseRun(run)))
      const before = requests.get(run)
      if (before?.when === when) return before.page
      // Without the signal, because leaving a view must not abort a request that the next view waits for.
      const page = source.episodes(run)
      requests.set(run, { when, page })
      page.catch(() => requests.delete(run))
      return page
    },
  }
}
