import { bestOf } from "../../runs/best.ts"
import type { Inlined } from "../data/inlined.ts"
import type { RecordedGroup } from "../data/recorded.ts"
import type { EpisodePage } from "../data/source.ts"
import { tellingOf } from "../data/telling.ts"
import type { RunSource } from "./run-source.ts"
import { tellingIterations } from "./telling.ts"

type ReportRun = Omit<Inlined["runs"][number], "groups">

/** Group of a report with its place. */
interface Chosen {
  readonly episodes: number
  /** Packed group; undefined if it cannot be read any more. */
  readonly pack: () => Promise<string | undefined>
}

/** What `chosenGroups` needs besides the runs. */
export interface Packing {
  readonly pack: (run: string, group: RecordedGroup) => Promise<string>
  /** Number of characters of packed groups that are kept, so that they are not read a second time. */
  kept: number
  /** Called with the number of iterations that were read. */
  readonly onRead: (iterations: number) => void
}

/**
 * All recorded groups in order of information, so that every prefix is a good selection: for each run in turn, and iterations spread over
 * the run, the most informative group first, then the second of each, and so on.
 */
export async function* chosenGroups(
  source: RunSource,
  runs: readonly ReportRun[],
  packing: Packing,
): AsyncGenerator<Chosen> {
  let read = 0
  const onRead = () => packing.onRead(++read)
  const ofRuns = runs.map(({ info, reports, episodes }) => {
    const iterations = tellingIterations([...new Set(episodes.iteration)], bestOf(reports.reports)?.iteration)
    return iterations.map((iteration) => byTelling(source, info.id, iteration, packing, onRead))
  })
  const longest = Math.max(0, ...ofRuns.map((queues) => queues.length))
  let queues = Array.from({ length: longest }, (_, at) => ofRuns.flatMap((ofRun) => ofRun[at] ?? [])).flat()
  while (queues.length > 0) {
    const left: typeof queues = []
    for (const queue of queues) {
      const { done, value } = await queue.next()
      if (done) continue
      yield value
      left.push(queue)
    }
    queues = left
  }
}

/** Number of groups. */
export function groupCount({ iteration, group }: EpisodePage): number {
  return new Set(iteration.map((one, at) => `${one}/${group[at]}`)).size
}

/** Groups of an iteration, the most informative first. All are read once for the order; those that are not kept are read again. */
async function* byTelling(
  source: RunSource,
  run: string,
  iteration: number,
  packing: Packing,
  onRead: () => void,
): AsyncGenerator<Chosen, undefined> {
  const found: { readonly group: number; readonly episodes: number; readonly telling: number; packed?: string }[] = []
  let best: RecordedGroup | undefined
  for await (const group of source.groups(run, iteration)) {
    const telling = tellingOf(group)
    if (found.every((other) => other.telling < telling)) best = group
    const packed = packing.kept > 0 ? await packing.pack(run, group) : undefined
    packing.kept -= packed?.length ?? 0
    found.push({
      group: group.group,
      episodes: group.episodes.length,
      telling,
      ...(packed !== undefined && { packed }),
    })
  }
  onRead()
  for (const [place, { group, episodes, packed }] of found.sort((a, b) => b.telling - a.telling).entries()) {
    const held = place === 0 ? best : undefined
    best = undefined
    const pack = async () => {
      if (packed !== undefined) return packed
      const whole = held ?? (await source.group(run, iteration, group))
      return whole && (await packing.pack(run, whole))
    }
    yield { episodes, pack }
  }
  return undefined
}
