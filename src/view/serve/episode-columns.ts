import { Pace } from "../../util/pace.ts"
import type { EpisodePage } from "../data/source.ts"
import type { IterationSummary } from "../record/file.ts"
import type { EpisodesRange } from "../record/read.ts"
import type { EpisodeReader } from "./episode-reader.ts"

/**
 * The episodes of the iterations after `cursor`, which is one that was returned before; all without. What was told before counts no
 * more where the first recorded iteration is another (older ones are removed as new ones come), or the last one that was told of: after
 * a step back to a checkpoint it is played anew, or not there.
 */
export async function readEpisodesSince(
  reader: Pick<EpisodeReader, "recordedIterations" | "readSummaries">,
  run: string,
  cursor?: string,
  onUnreadable?: EpisodesRange["onUnreadable"],
): Promise<EpisodePage> {
  const [first] = await reader.recordedIterations(run)
  const last = Number(cursor?.split(".")[1])
  const [known, ...newer] = last > 0 ? await reader.readSummaries(run, { from: last, onUnreadable }) : []
  const goesOn = known !== undefined && cursor === cursorOf(first, known)
  const summaries = goesOn ? newer : await reader.readSummaries(run, { onUnreadable })
  const newest = summaries.at(-1) ?? (goesOn ? known : undefined)
  const reset = !goesOn && (newest !== undefined || cursor !== cursorOf())
  return { cursor: cursorOf(first, newest), reset, ...(await joined(summaries)) }
}

type Columns = Omit<EpisodePage, "cursor" | "reset" | "tasks">

async function joined(summaries: readonly IterationSummary[]): Promise<Columns & Pick<EpisodePage, "tasks">> {
  const pace = new Pace()
  const columns = {
    ...{ iteration: [], group: [], member: [], task: [], outcome: [], return: [], steps: [], tokens: [] },
    success: [],
  } as { [Name in keyof Columns]: Columns[Name][number][] }
  const tasks = new Map<string, number>()
  for (const { iteration, task, tasks: own, checksum: _, ...summary } of summaries) {
    for (const name of own) if (!tasks.has(name)) tasks.set(name, tasks.size)
    for (const place of task) {
      columns.iteration.push(iteration)
      columns.task.push(tasks.get(own[place]!)!)
    }
    for (const name of ["group", "member", "outcome", "return", "steps", "tokens"] as const)
      for (const value of summary[name]) columns[name].push(value)
    for (const value of summary.success) columns.success.push(value)
    if (pace.due()) await pace.rest()
  }
  return { ...columns, tasks: [...tasks.keys()] }
}

/** From which iteration to which was told, and whether the last is still the same. */
function cursorOf(first?: number, last?: IterationSummary): string {
  return first === undefined || !last ? "none" : `${first}.${last.iteration}.${last.checksum}`
}
