import type { EpisodePage, Source } from "../data/source.ts"
import type { RunStore } from "./run-store.ts"

/**
 * The same source, of which no two views ask the same: all episodes of a run are asked for once, and again only when it has gone on.
 * What is asked with a cursor is news, and asked each time.
 */
export function sharedSource(source: Source, store: RunStore): Source {
  const asked = new Map<string, { readonly when: string; readonly page: Promise<EpisodePage> }>()
  return {
    ...source,
    episodes(run, cursor, signal) {
      if (cursor !== undefined) return source.episodes(run, cursor, signal)
      const when = JSON.stringify(store.runs.find(({ id }) => id === run))
      const before = asked.get(run)
      if (before?.when === when) return before.page
      // Without the signal: who leaves a view must not take from the next what both wait for.
      const page = source.episodes(run)
      asked.set(run, { when, page })
      page.catch(() => asked.delete(run))
      return page
    },
  }
}
