import { lstat, readdir } from "node:fs/promises"
import { join } from "node:path"
import { logWarning } from "../../runs/check-metrics.ts"
import { runFiles } from "../../runs/files.ts"
import { GigpoError } from "../../util/errors.ts"
import { overviewOf } from "../data/overview.ts"
import type { RecordedGroup } from "../data/recorded.ts"
import { baseRun, type EpisodePage, isEvaluations, type ReportPage, type RunInfo, type Source } from "../data/source.ts"
import { describeRun } from "../runs.ts"
import { readEpisodesSince } from "./episode-columns.ts"
import { type EpisodeReader, noEpisodes, recordedEvaluations } from "./episode-reader.ts"
import { readNewestReports, readReportsSince } from "./report-log.ts"
import { type FoundRun, RunFolders } from "./run-folders.ts"
import { searchEpisodes } from "./search-episodes.ts"

/** Source of runs in folders. */
export interface RunSource extends Source {
  reports(run: string, cursor?: string): Promise<ReportPage>
  episodes(run: string, cursor?: string): Promise<EpisodePage>
  /** All recorded groups of an iteration. */
  groups(run: string, iteration: number): AsyncIterable<RecordedGroup>
}

/**
 * Opens a source of runs in folders, which are read again at each request.
 *
 * @param paths - folders of runs, and folders that contain runs
 * @param tell - called once for each damage of metrics.jsonl and each unreadable iteration
 * @throws GigpoError `BAD_ARGUMENT` if a folder does not exist or contains no run; requests for an unknown run reject with it, too
 */
export async function runSource(
  paths: readonly string[],
  reader: EpisodeReader,
  tell: (error: GigpoError) => void,
  evaluations: EpisodeReader = recordedEvaluations,
): Promise<RunSource> {
  const reported = new Set<string>()
  const onUnreadable = (error: GigpoError) => {
    if (!reported.has(error.message)) tell(error)
    reported.add(error.message)
  }
  const folders = await RunFolders.open(paths)
  const readerOf = (id: string) => (isEvaluations(id) ? evaluations : reader)
  const find = async (id: string): Promise<FoundRun> => {
    const run = await folders.find(baseRun(id))
    if (run) return run
    throw new GigpoError("BAD_ARGUMENT", "This run does not exist, or no longer exists.")
  }
  return {
    live: true,
    async runs() {
      // A run that is removed meanwhile is skipped.
      const infos = await Promise.all((await folders.list()).map((run) => infoOf(run).catch(() => undefined)))
      return infos.filter((info) => info !== undefined)
    },
    async overview(id) {
      const run = await find(id)
      const { settings } = await infoOf(run)
      return overviewOf((await readReportsSince(join(run.directory, runFiles.metrics))).reports, settings)
    },
    async reports(id, cursor) {
      const run = await find(id)
      const info = await infoOf(run)
      const warning = cursor === undefined && (await logWarning(run.directory))
      if (warning) onUnreadable(new GigpoError("RUN_CORRUPT", warning))
      return { run: info, ...(await readReportsSince(join(run.directory, runFiles.metrics), cursor)) }
    },
    async episodes(id, cursor) {
      const { directory } = await find(id)
      return await readEpisodesSince(
        (await keepsOwn(directory)) ? readerOf(id) : noEpisodes,
        directory,
        cursor,
        onUnreadable,
      )
    },
    async search(id, text, before) {
      const { directory } = await find(id)
      if (!(await keepsOwn(directory))) return { matches: [] }
      return await searchEpisodes(readerOf(id), directory, text, before)
    },
    async group(id, iteration, group, members) {
      const { directory } = await find(id)
      if (!(await keepsOwn(directory))) return undefined
      return await readerOf(id).readGroup(directory, iteration, group, members && new Set(members))
    },
    async *groups(id, iteration) {
      const { directory } = await find(id)
      if (await keepsOwn(directory))
        yield* readerOf(id).readEpisodes(directory, { from: iteration, to: iteration, onUnreadable })
    },
  }
}

async function infoOf({ id, name, directory }: FoundRun): Promise<RunInfo> {
  const reports = await readNewestReports(join(directory, runFiles.metrics))
  return { ...(await describeRun(directory, { reports })), id, name }
}

/** Whether the folder of the episodes, if it exists, contains only regular files; links could lead out of the folder. */
async function keepsOwn(run: string): Promise<boolean> {
  const folder = join(run, runFiles.episodes)
  try {
    if (!(await lstat(folder)).isDirectory()) return false
    return (await readdir(folder, { withFileTypes: true })).every((entry) => entry.isFile())
  } catch {
    return true // the reader reports the error
  }
}
