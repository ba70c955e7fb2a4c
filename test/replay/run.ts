import { GigpoError } from "../../src/util/errors.ts"
import { replayAlfworld } from "./alfworld.ts"
import { readRecording } from "./recording.ts"
import type { Difference, Replay } from "./replay.ts"
import { replaySearchSimilarity } from "./search-similarity.ts"
import { replaySokoban } from "./sokoban.ts"
import { replayWebshop } from "./webshop.ts"
import { replayWebshopRanking } from "./webshop-ranking.ts"

/** The recordings that can be replayed, by the name of what they record. */
export const replays: Readonly<Record<string, Replay>> = {
  alfworld: replayAlfworld,
  webshop: replayWebshop,
  "webshop-ranking": replayWebshopRanking,
  "search-similarity": replaySearchSimilarity,
  sokoban: replaySokoban,
}

export interface ReplayReport {
  readonly steps: number
  /** Steps that differ. */
  readonly differences: number
  /** The first of them, whole. */
  readonly first: readonly Difference[]
}

/** Replays a recording file. Throws `BAD_ARGUMENT` for an unknown name; see `readRecording` for the file. */
export async function replay(name: string, data: string, path: string, show = 3): Promise<ReplayReport> {
  if (!Object.hasOwn(replays, name))
    throw new GigpoError("BAD_ARGUMENT", `There is no replay "${name}"; known: ${Object.keys(replays).join(", ")}.`)
  let [steps, differences] = [0, 0]
  const first: Difference[] = []
  for await (const found of replays[name]!(data, readRecording(path))) {
    steps++
    if (found.length > 0 && differences++ < show) first.push(...found)
  }
  return { steps, differences, first }
}
