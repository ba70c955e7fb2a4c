import { bestOf } from "../../runs/best.ts"
import type { Inlined } from "../data/inlined.ts"
import type { RecordedGroup } from "../data/recorded.ts"
import type { EpisodePage } from "../data/source.ts"
import { tellingOf } from "../data/telling.ts"
import type { RunSource } from "./run-source.ts"
import { tellingIterations } from "./telling.ts"

type Told = Omit<Inlined["runs"][number], "groups">

/** Group with its place and a function that reads it. */
interface Chosen {
  readonly run: string
  readonly iteration: number
  readonly group: number
  readonly read: () => Promise<RecordedGroup | undefined>
}

/**
 * All recorded groups in order of information, so that every prefix is a good selection: for each run in turn, and iterations spread over
 * the run, the most informative group first, then the second of each, and so on.
 */
export async function* chosenGroups(source: RunSource, runs: readonly Told[]): AsyncGenerator<Chosen> {
  const ofRuns = runs.map(({ info, reports, episodes }) => {
    const iterations = tellingIterations([...new Set(episodes.iteration)], bestOf(reports.reports)?.iteration)
    return iterations.map((iteration) => byTelling(source, info.id, iteration))
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

/** Groups of an iteration, the most informative first. All are read once for the order; all but the first are read again when needed. */
async function* byTelling(source: RunSource, run: string, iteration: number): AsyncGenerator<Chosen, undefined> {
  const found: { readonly group: number; readonly telling: number }[] = []
  let best: RecordedGroup | undefined
  for await (const group of source.groups(run, iteration)) {
    const telling = tellingOf(group)
    if (found.every((other) => other.telling < telling)) best = group
    found.push({ group: group.group, telling })
  }
  for (const [place, { group }] of found.sort((a, b) => b.telling - a.telling).entries()) {
    const held = place === 0 ? best : undefined
    best = undefined
    yield { run, iteration, group, read: async () => held ?? (await source.group(run, iteration, group)) }
  }
  return undefined
}
