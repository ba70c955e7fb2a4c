import { resolve } from "node:path"
import { replaceFile } from "../../files/atomic-file.ts"
import { checkArguments, checkPath, type KeysOf } from "../../options/arguments.ts"
import { GigpoError } from "../../util/errors.ts"
import { warner } from "../../util/warn.ts"
import { inlinedName, inlinedParts } from "../data/inlined.ts"
import { evaluationsOf } from "../data/source.ts"
import { chosenGroups, groupCount } from "./chosen-groups.ts"
import { type EpisodeReader, recordedEpisodes } from "./episode-reader.ts"
import { readPage } from "./page-files.ts"
import { packPart, reportHtml } from "./report-html.ts"
import { checkReportPath } from "./report-path.ts"
import { runSource } from "./run-source.ts"
import { roundToFour, sentGroup } from "./sent-group.ts"

/** Options of `writeReport`. */
export interface WriteReportOptions {
  /** Maximum number of complete episodes. Default: as many as fit. */
  readonly episodes?: number
  /** Maximum size, in MB (10⁶ bytes). Default 5. */
  readonly maxMegabytes?: number
  /** Whether to replace a file that is not a report. Default false; an older report is always replaced. */
  readonly overwrite?: boolean
  /** Called with the number of groups written so far. */
  readonly onProgress?: (groups: number) => void
  /** Called for recorded iterations that cannot be read and are skipped. Default: a warning of Node.js. */
  readonly onWarning?: (message: string) => void
  readonly signal?: AbortSignal
}

/** Contents of a written report. */
export interface WrittenReport {
  readonly path: string
  readonly bytes: number
  readonly runs: number
  /** Number of groups that it contains completely. */
  readonly groups: number
  /** Number of recorded groups. */
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

/** Number of consecutive groups that do not fit, after which no others are tried. */
const patience = 4

/**
 * Writes the dashboard of runs, in their current state, as one self-contained HTML file: all reports, the summaries of all episodes, and as
 * many complete groups of episodes as fit, spread over the run, preferring groups in which states are shared.
 *
 * @param runs - folders of runs, and folders that contain runs
 * @param path - file to write; replaced atomically
 * @param reader - reader of the episodes. Default: the format of `recordEpisodes`.
 * @throws GigpoError `BAD_ARGUMENT` if a folder does not exist or contains no run, or the reports alone exceed the size; `FILE_EXISTS` if
 * another file is in the way; `IO`
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
  const onWarning = warner(options.onWarning)
  if (!(mostEpisodes >= 0))
    throw new GigpoError("BAD_ARGUMENT", "writeReport: episodes must be a number of at least 0.")
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
  const evaluations = await Promise.all(
    told.map(async ({ info, ...rest }) => {
      const id = evaluationsOf(info.id)
      return { ...rest, info: { ...info, id }, episodes: await source.episodes(id) }
    }),
  )
  const withEpisodes = [...told, ...evaluations.filter(({ episodes }) => episodes.iteration.length > 0)]
  const recorded = withEpisodes.reduce((sum, { episodes }) => sum + groupCount(episodes), 0)
  const parts: string[] = []
  for (const [name, value] of inlinedParts({
    runs: told,
    evaluations,
    made: { time: new Date().toISOString(), recorded },
  })) {
    options.signal?.throwIfAborted()
    parts.push(await packPart(name, value))
  }
  const most = maxMegabytes * 1e6
  let room = most - Buffer.byteLength(reportHtml(page, parts))
  if (room < 0)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The reports and the list of episodes take ${((most - room) / 1e6).toFixed(1)} MB, more than the ${maxMegabytes} MB that the ` +
        "report may have. Increase --max-megabytes, or give fewer runs.",
    )

  let [groups, episodes, misses] = [0, 0, 0]
  for await (const { run, iteration, group, read } of chosenGroups(source, withEpisodes)) {
    if (misses >= patience || episodes >= mostEpisodes) break
    options.signal?.throwIfAborted()
    const found = await read()
    if (!found || episodes + found.episodes.length > mostEpisodes) continue
    const part = await packPart(
      inlinedName("group", run, iteration, group),
      await sentGroup(found, { round: roundToFour }),
    )
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
