import { Pace } from "../../util/pace.ts"
import { matchesIn } from "../data/search-group.ts"
import type { Found } from "../data/source.ts"
import type { EpisodeReader } from "./episode-reader.ts"

/** Milliseconds and number of matches after which the rest is left to the next request. */
const [longest, most] = [1500, 500]

/**
 * Searches the texts of recorded episodes, the newest iterations first. Iterations that cannot be read are skipped. The time of a request
 * is limited; at least one iteration is searched.
 */
export async function searchEpisodes(
  reader: EpisodeReader,
  run: string,
  text: string,
  before = Number.POSITIVE_INFINITY,
): Promise<Found> {
  const iterations = (await reader.recordedIterations(run)).filter((iteration) => iteration < before).reverse()
  const [started, pace] = [performance.now(), new Pace()]
  const matches: Found["matches"][number][] = []
  for (const [at, iteration] of iterations.entries()) {
    for await (const group of reader.readEpisodes(run, { from: iteration, to: iteration, onUnreadable: () => {} })) {
      matches.push(...matchesIn(group, text))
      if (pace.due()) await pace.rest()
    }
    if (at < iterations.length - 1 && (performance.now() - started > longest || matches.length >= most))
      return { matches, next: iteration }
  }
  return { matches }
}
