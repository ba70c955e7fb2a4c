import type { GigpoError } from "../../util/errors.ts"
import { Pace } from "../../util/pace.ts"
import { type EpisodePage, type ProblemCount, problemCounts } from "../data/source.ts"
import type { RecordedIteration } from "../record/file.ts"
import type { EpisodesRange } from "../record/read.ts"
import type { EpisodeReader } from "./episode-reader.ts"

/**
 * Episodes of the iterations after `cursor`, a cursor that was returned before; all episodes without a cursor. Earlier episodes are obsolete
 * if the first recorded iteration has changed (old ones are removed), or the last reported one (after a return to a checkpoint, iterations
 * are repeated or missing).
 */
export async function readEpisodesSince(
  reader: Pick<EpisodeReader, "recordedIterations" | "readRecordedIterations">,
  run: string,
  cursor?: string,
  onUnreadable: EpisodesRange["onUnreadable"] = () => {},
): Promise<EpisodePage> {
  const unreadable: number[] = []
  const range = {
    onUnreadable(error: GigpoError, iteration: number) {
      unreadable.push(iteration)
      onUnreadable(error, iteration)
    },
  }
  const [first] = await reader.recordedIterations(run)
  const last = Number(cursor?.split(".")[1])
  const [known, ...newer] = last > 0 ? await reader.readRecordedIterations(run, { from: last, ...range }) : []
  const goesOn = known !== undefined && cursor === cursorOf(first, known)
  const summaries = goesOn ? newer : await reader.readRecordedIterations(run, range)
  const newest = summaries.at(-1) ?? (goesOn ? known : undefined)
  const reset = !goesOn && (newest !== undefined || cursor !== cursorOf())
  return { cursor: cursorOf(first, newest), reset, unreadable: [...new Set(unreadable)], ...(await joined(summaries)) }
}

type Columns = Omit<EpisodePage, "cursor" | "reset" | "unreadable" | "tasks" | "problems">

async function joined(
  summaries: readonly RecordedIteration[],
): Promise<Columns & Pick<EpisodePage, "tasks" | "problems">> {
  const pace = new Pace()
  const columns = {
    ...{ iteration: [], group: [], member: [], task: [], outcome: [], return: [], steps: [], tokens: [] },
    success: [],
  } as { [Name in keyof Columns]: Columns[Name][number][] }
  const problems = Object.fromEntries(problemCounts.map((name) => [name, [] as (number | null)[]])) as Record<
    ProblemCount,
    (number | null)[]
  >
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
    for (const name of problemCounts)
      for (const at of task.keys()) problems[name].push(summary.problems?.[name][at] ?? null)
    if (pace.due()) await pace.rest()
  }
  return { ...columns, problems, tasks: [...tasks.keys()] }
}

/** Cursor with the range of reported iterations and the checksum of the last one. */
function cursorOf(first?: number, last?: RecordedIteration): string {
  return first === undefined || !last ? "none" : `${first}.${last.iteration}.${last.checksum}`
}
