import { lstat, readdir } from "node:fs/promises"
import { join } from "node:path"
import { logWarning } from "../../runs/check-metrics.ts"
import { runFiles } from "../../runs/files.ts"
import { GigpoError } from "../../util/errors.ts"
import type { RecordedGroup } from "../data/recorded.ts"
import type { RunInfo, Source } from "../data/source.ts"
import { describeRun } from "../runs.ts"
import { readEpisodesSince } from "./episode-columns.ts"
import { type EpisodeReader, noEpisodes } from "./episode-reader.ts"
import { readNewestReports, readReportsSince } from "./report-log.ts"
import { type FoundRun, RunFolders } from "./run-folders.ts"

/** Runs in folders. */
export interface RunSource extends Source {
  /** All recorded groups of an iteration. */
  groups(run: string, iteration: number): AsyncIterable<RecordedGroup>
}

/**
 * Runs as they lie in folders, read anew whenever they are asked for.
 *
 * @param paths - folders of runs, and folders that such lie in.
 * @param tell - receives, once each, damage of a run's metrics.jsonl and recorded iterations that cannot be read.
 * @throws GigpoError `BAD_ARGUMENT` where there is no such folder, or no run in one. What the source is asked of a run that it does not
 * know, or not any more, rejects with it, too.
 */
export async function runSource(
  paths: readonly string[],
  reader: EpisodeReader,
  tell: (error: GigpoError) => void,
): Promise<RunSource> {
  const told = new Set<string>()
  const onUnreadable = (error: GigpoError) => {
    if (!told.has(error.message)) tell(error)
    told.add(error.message)
  }
  const folders = await RunFolders.open(paths)
  const find = async (id: string): Promise<FoundRun> => {
    const run = await folders.find(id)
    if (run) return run
    throw new GigpoError("BAD_ARGUMENT", "There is no run of that name, or not any more.")
  }
  return {
    live: true,
    async runs() {
      // One that goes while it is looked at is not there.
      const infos = await Promise.all((await folders.list()).map((run) => infoOf(run).catch(() => undefined)))
      return infos.filter((info) => info !== undefined)
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
      return await readEpisodesSince((await keepsOwn(directory)) ? reader : noEpisodes, directory, cursor, onUnreadable)
    },
    async group(id, iteration, group) {
      const { directory } = await find(id)
      return (await keepsOwn(directory)) ? await reader.readGroup(directory, iteration, group) : undefined
    },
    async *groups(id, iteration) {
      const { directory } = await find(id)
      if (await keepsOwn(directory))
        yield* reader.readEpisodes(directory, { from: iteration, to: iteration, onUnreadable })
    },
  }
}

async function infoOf({ id, name, directory }: FoundRun): Promise<RunInfo> {
  const reports = await readNewestReports(join(directory, runFiles.metrics))
  return { ...(await describeRun(directory, { reports })), id, name }
}

/** Whether the folder of the episodes, where there is one, holds files alone: a link would lead elsewhere. */
async function keepsOwn(run: string): Promise<boolean> {
  const folder = join(run, runFiles.episodes)
  try {
    if (!(await lstat(folder)).isDirectory()) return false
    return (await readdir(folder, { withFileTypes: true })).every((entry) => entry.isFile())
  } catch {
    return true // the reader says what is the matter
  }
}
