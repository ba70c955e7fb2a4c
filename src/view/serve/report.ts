import { resolve } from "node:path"
import { GigpoError } from "../../errors.ts"
import { replaceFile } from "../../files/atomic-file.ts"
import { checkArguments, checkPath, type KeysOf } from "../../options/arguments.ts"
import { inlinedName, inlinedParts } from "../data/inlined.ts"
import { chosenGroups, groupCount } from "./chosen-groups.ts"
import { type EpisodeReader, recordedEpisodes } from "./episode-reader.ts"
import { readPage } from "./page-files.ts"
import { packPart, reportHtml } from "./report-html.ts"
import { checkReportPath } from "./report-path.ts"
import { runSource } from "./run-source.ts"
import { inFourDigits } from "./telling.ts"

export interface WriteReportOptions {
  /** Most episodes that it holds whole. Default: as many as there is room for. */
  readonly episodes?: number
  /** Millions of bytes that it may have. Default 5. */
  readonly maxMegabytes?: number
  /** Replace a file that is no report. Default false; an older report is replaced. */
  readonly overwrite?: boolean
  /** Told how many groups it holds, whenever there is one more. */
  readonly onProgress?: (groups: number) => void
  /** Told of recorded iterations that cannot be read, and are left out. Default: `process.emitWarning`. */
  readonly onWarning?: (message: string) => void
  readonly signal?: AbortSignal
}

/** What a report holds. */
export interface WrittenReport {
  readonly path: string
  readonly bytes: number
  readonly runs: number
  /** Groups whose episodes it holds whole, of how many that were recorded. */
  readonly groups: number
  readonly recorded: number
}

const optionKeys: KeysOf<WriteReportOptions> = {
  episodes: true,
  maxMegabytes: true,
  overwrite: true,
  onProgress: true,
  onWarning: true,
  signal: true,
}

/** Groups in a row for which there is no room, after which there will be for none. */
const patience = 4

/**
 * Writes what `openView` would show of runs, as they are now, into one HTML file that needs nothing else: all reports, the figures of
 * all episodes, and as many groups of them whole as there is room for, of all times of a run, those first in which states were shared.
 *
 * @param reader - reads their episodes. Default: as `recordEpisodes` writes them.
 * @throws GigpoError `BAD_ARGUMENT` where there is no such folder, no run in one, or no room even for the reports; `FILE_EXISTS` where
 * something else is in the way; `IO`. There is a whole report then, or what was there before.
 */
export async function writeReport(
  runs: readonly string[],
  path: string,
  options: WriteReportOptions = {},
  reader: EpisodeReader = recordedEpisodes,
): Promise<WrittenReport> {
  checkArguments("writeReport", options, optionKeys)
  checkPath("The file of the report", path)
  const { episodes: mostEpisodes = Number.POSITIVE_INFINITY, maxMegabytes = 5, overwrite = false } = options
  const { onWarning = (message) => process.emitWarning(message) } = options
  if (!(mostEpisodes >= 0)) throw new GigpoError("BAD_ARGUMENT", "writeReport: episodes must be a number from 0.")
  if (!(maxMegabytes > 0)) throw new GigpoError("BAD_ARGUMENT", "writeReport: maxMegabytes must be above 0.")
  const target = resolve(path)
  await checkReportPath(target, overwrite)
  const page = await readPage()
  const source = await runSource(runs, reader, ({ message }) => onWarning(message))
  const told = await Promise.all(
    (await source.runs()).map(async (info) => {
      const [reports, episodes] = [await source.reports(info.id), await source.episodes(info.id)]
      return { info, reports, episodes, groups: [] }
    }),
  )
  const recorded = told.reduce((sum, { episodes }) => sum + groupCount(episodes), 0)
  const parts: string[] = []
  for (const [name, value] of inlinedParts({ runs: told, made: { time: new Date().toISOString(), recorded } })) {
    options.signal?.throwIfAborted()
    parts.push(await packPart(name, value))
  }
  const most = maxMegabytes * 1e6
  let room = most - Buffer.byteLength(reportHtml(page, parts))
  if (room < 0)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The reports and the list of episodes take ${((most - room) / 1e6).toFixed(1)} MB, more than the ${maxMegabytes} MB that the ` +
        "report may have. Allow more (--max-megabytes), or name fewer runs.",
    )

  let [groups, episodes, misses] = [0, 0, 0]
  for await (const { run, iteration, group, read } of chosenGroups(source, told)) {
    if (misses >= patience || episodes >= mostEpisodes) break
    options.signal?.throwIfAborted()
    const found = await read()
    if (!found || episodes + found.episodes.length > mostEpisodes) continue
    const part = await packPart(inlinedName("group", run, iteration, group), inFourDigits(found))
    if (part.length + 1 > room) {
      misses++
      continue
    }
    parts.push(part)
    room -= part.length + 1
    misses = 0
    episodes += found.episodes.length
    groups++
    options.onProgress?.(groups)
  }
  const html = reportHtml(page, parts)
  await replaceFile(target, html)
  return { path: target, bytes: Buffer.byteLength(html), runs: told.length, groups, recorded }
}
