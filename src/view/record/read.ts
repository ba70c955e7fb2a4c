import type { FileHandle } from "node:fs/promises"
import { GigpoError } from "../../errors.ts"
import { isThere } from "../../files/io-error.ts"
import { checkArguments, checkPath, type KeysOf } from "../../options/arguments.ts"
import type { RecordedGroup } from "../data/recorded.ts"
import { decodeBlock } from "./decode.ts"
import { type IterationSummary, readBlock, readSummary, withEpisodesFile } from "./file.ts"
import { episodesPath, recordedIterations } from "./folder.ts"

export interface EpisodesRange {
  /** The first iteration. Default: the first that was recorded. */
  readonly from?: number | undefined
  /** The last, which is read, too. Default: the last that was recorded. */
  readonly to?: number | undefined
  /** Told of an iteration whose file cannot be read (`RUN_CORRUPT`), which is left out then. Default: it is thrown. */
  readonly onUnreadable?: ((error: GigpoError) => void) | undefined
}

const rangeKeys: KeysOf<EpisodesRange> = { from: true, to: true, onUnreadable: true }

/**
 * The episodes that a run recorded (`recordEpisodes`), a group at a time, by iterations and tasks. What was not recorded is absent. A
 * run that goes on may be read: an iteration is there once it is whole.
 *
 * @param run its folder
 * @throws GigpoError `RUN_CORRUPT` that names a file that was cut short or changed, or that another version wrote; `IO`
 */
export async function* readEpisodes(
  run: string,
  range: EpisodesRange = {},
): AsyncGenerator<RecordedGroup, void, undefined> {
  checkArguments("readEpisodes", range, rangeKeys)
  for (const iteration of await iterationsOf(run, range)) {
    try {
      yield* groupsOf(run, iteration)
    } catch (error) {
      leaveOut(error, range)
    }
  }
}

/** One group of those; undefined where it was not recorded. */
export async function readGroup(run: string, iteration: number, group: number): Promise<RecordedGroup | undefined> {
  checkPath("The folder of the run", run)
  for await (const found of groupsOf(run, iteration, group)) if (found.group === group) return found
  return undefined
}

/** A short account of the episodes of each recorded iteration, in their order; no episode is read. Throws as `readEpisodes`. */
export async function readSummaries(run: string, range: EpisodesRange = {}): Promise<IterationSummary[]> {
  checkArguments("readSummaries", range, rangeKeys)
  const summaries: IterationSummary[] = []
  for (const iteration of await iterationsOf(run, range)) {
    const path = episodesPath(run, iteration)
    try {
      const found = await withEpisodesFile(path, (file) => readSummary(file, path))
      if (found) summaries.push(found.summary)
    } catch (error) {
      leaveOut(error, range)
    }
  }
  return summaries
}

function leaveOut(error: unknown, { onUnreadable }: EpisodesRange): void {
  if (!onUnreadable || !GigpoError.is(error) || error.code !== "RUN_CORRUPT") throw error
  onUnreadable(error)
}

async function iterationsOf(
  run: string,
  { from = 1, to = Number.POSITIVE_INFINITY }: EpisodesRange,
): Promise<number[]> {
  checkPath("The folder of the run", run)
  if (!(await isThere(run))) throw new GigpoError("IO", `There is no run in ${run}: give the folder of one.`)
  return (await recordedIterations(run)).filter((iteration) => iteration >= from && iteration <= to)
}

/** The groups of an iteration, or of the blocks that have episodes of one. */
async function* groupsOf(
  run: string,
  iteration: number,
  wanted?: number,
): AsyncGenerator<RecordedGroup, void, undefined> {
  const path = episodesPath(run, iteration)
  const { blocks = [] } = (await withEpisodesFile(path, (file) => readSummary(file, path))) ?? {}
  let open: RecordedGroup | undefined // may go on in the next block
  for (const block of blocks) {
    if (wanted !== undefined && !block.groups.includes(wanted)) continue
    const read = async (file: FileHandle) => decodeBlock(await readBlock(file, block), iteration)
    for (const group of (await withEpisodesFile(path, read)) ?? []) {
      if (open?.group === group.group) open = { ...open, episodes: [...open.episodes, ...group.episodes] }
      else {
        if (open) yield open
        open = group
      }
    }
  }
  if (open) yield open
}
