import { resolve } from "node:path"
import { replaceFile } from "../../files/atomic-file.ts"
import { checkArguments, checkPath, type KeysOf } from "../../options/arguments.ts"
import { GigpoError } from "../../util/errors.ts"
import { warner } from "../../util/warn.ts"
import { inlinedName } from "../data/inlined.ts"
import { evaluationsOf } from "../data/source.ts"
import { chosenGroups, groupCount, type Packing } from "./chosen-groups.ts"
import { type EpisodeReader, recordedEpisodes } from "./episode-reader.ts"
import { readPage } from "./page-files.ts"
import { packPart, reportHtml } from "./report-html.ts"
import { partsOf } from "./report-parts.ts"
import { checkReportPath } from "./report-path.ts"
import { runSource } from "./run-source.ts"
import { roundToFour, sentGroup } from "./sent-group.ts"

/** Options of `writeReport`. */
export interface WriteReportOptions {
  /** Maximum number of complete episodes. Default: as many as fit. */
  readonly episodes?: number
  /** Maximum size, in MB (10⁶ bytes). Default 5. */
  readonly maxSize?: number
  /** Whether to replace a file that is not a report. Default false; an older report is always replaced. */
  readonly overwrite?: boolean
  /** Called with the number of groups written so far. */
  readonly onProgress?: (groups: number) => void
  /** Called with the number of recorded iterations read so far, of how many. All are read for the choice of groups. */
  readonly onRead?: (iterations: number, of: number) => void
  /** Called for recorded iterations that cannot be read and are skipped. Default: a warning of Node.js. */
  readonly onWarning?: (message: string) => void
  /** Signal that aborts the work. An abort writes nothing. */
  readonly signal?: AbortSignal
}

/** Contents of a written report. */
export interface WrittenReport {
  /** Path of the file. */
  readonly path: string
  /** Size of the file. */
  readonly bytes: number
  /** Number of runs in the report. */
  readonly runs: number
  /** Number of groups that it contains completely. */
  readonly groups: number
  /** Number of recorded groups. */
  readonly recorded: number
  /** Number of iterations that the curves have (`shown`), and of `all`; absent if they have all. */
  readonly iterations?: { readonly shown: number; readonly all: number }
}

const optionKeys: KeysOf<WriteReportOptions> = {
  episodes: true,
  maxSize: true,
  overwrite: true,
  onProgress: true,
  onRead: true,
  onWarning: true,
  signal: true,
}

/** Share of the size besides the page that the reports may take before some are left out. */
const mostOfReports = 0.6
/** Characters of packed groups that are kept in memory, as a multiple of the size of the report. */
const kept = 4

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
  const { episodes: mostEpisodes = Number.POSITIVE_INFINITY, maxSize = 5, overwrite = false } = options
  const onWarning = warner(options.onWarning)
  if (!(mostEpisodes >= 0))
    throw new GigpoError("BAD_ARGUMENT", "writeReport: episodes must be a number of at least 0.")
  if (!(maxSize > 0)) throw new GigpoError("BAD_ARGUMENT", "writeReport: maxSize must be above 0.")
  const target = resolve(path)
  await checkReportPath(target, overwrite)
  const page = await readPage()
  const source = await runSource(runs, reader, ({ message }) => onWarning(message))
  const { inlinedRuns, evaluations } = await inlinedOf(source)
  const withEpisodes = [...inlinedRuns, ...evaluations.filter(({ episodes }) => episodes.iteration.length > 0)]
  const recorded = withEpisodes.reduce((sum, { episodes }) => sum + groupCount(episodes), 0)
  const most = maxSize * 1e6
  const mostReports = mostOfReports * (most - Buffer.byteLength(reportHtml(page, [])))
  const { parts, iterations } = await partsOf({ inlinedRuns, evaluations, recorded, most: mostReports }, options.signal)
  let room = most - Buffer.byteLength(reportHtml(page, parts))
  if (room < 0)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The reports and the list of episodes take ${((most - room) / 1e6).toFixed(1)} MB, more than the ${maxSize} MB that the ` +
        "report may have. Increase --max-size (in code maxSize), or give fewer runs.",
    )

  const readable = withEpisodes.reduce((sum, { episodes }) => sum + new Set(episodes.iteration).size, 0)
  const packing: Packing = {
    kept: kept * most,
    pack: async (run, group) => {
      options.signal?.throwIfAborted()
      const name = inlinedName("group", run, group.iteration, group.group)
      return await packPart(name, await sentGroup(group, { round: roundToFour }))
    },
    onRead: (read) => options.onRead?.(read, readable),
  }
  let [groups, episodes, misses] = [0, 0, 0]
  for await (const { episodes: count, pack } of chosenGroups(source, withEpisodes, packing)) {
    if (misses >= patience || episodes >= mostEpisodes) break
    options.signal?.throwIfAborted()
    if (episodes + count > mostEpisodes) continue
    const part = await pack()
    if (part === undefined) continue
    if (part.length + 1 > room) {
      misses++
      continue
    }
    parts.push(part)
    room -= part.length + 1
    misses = 0
    episodes += count
    groups++
    options.onProgress?.(groups)
  }
  const html = reportHtml(page, parts)
  await replaceFile(target, html)
  return {
    path: target,
    bytes: Buffer.byteLength(html),
    runs: inlinedRuns.length,
    groups,
    recorded,
    ...(iterations && { iterations }),
  }
}

/** All runs of a source and their evaluations, as a report contains them, without groups of episodes. */
async function inlinedOf(source: Awaited<ReturnType<typeof runSource>>) {
  const inlinedRuns = await Promise.all(
    (await source.runs()).map(async (info) => {
      const [reports, episodes] = [await source.reports(info.id), await source.episodes(info.id)]
      return { info, reports, episodes, groups: [] }
    }),
  )
  const evaluations = await Promise.all(
    inlinedRuns.map(async ({ info, ...rest }) => {
      const id = evaluationsOf(info.id)
      return { ...rest, info: { ...info, id }, episodes: await source.episodes(id) }
    }),
  )
  return { inlinedRuns, evaluations }
}
