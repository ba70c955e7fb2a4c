import { baseRun, type EpisodePage, type RunInfo } from "../data/source.ts"
import type { PageContext } from "./view.ts"

/** Milliseconds between requests; doubled after each failure. */
const pause = 2000

/** Reports newly recorded episodes while the run continues and the view is open and visible. */
export async function followEpisodes(
  run: RunInfo,
  { source, store, signal }: PageContext,
  from: string,
  tell: (page: EpisodePage) => void,
): Promise<void> {
  if (!source.live) return
  const goesOn = () => store.runs.find(({ id }) => id === baseRun(run.id))?.state === "running"
  let [cursor, wait, went] = [from, pause, goesOn()]
  while (!signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, wait))
    if (signal.aborted) return
    // One more request after the end of the run, because its last episodes are written after its last report.
    const goes = goesOn()
    if (document.hidden || !(goes || went)) continue
    try {
      const page = await source.episodes(run.id, cursor, signal)
      if (signal.aborted) return
      if (page && (page.reset || page.iteration.length > 0)) tell(page)
      ;[cursor, wait, went] = [page?.cursor ?? cursor, pause, goes]
    } catch {
      wait = Math.min(wait * 2, 60_000) // try again later; the shown episodes remain valid
    }
  }
}
