import type { FileHandle } from "node:fs/promises"
import { isThere } from "../../files/io-error.ts"
import { checkArguments, checkPath, type KeysOf } from "../../options/arguments.ts"
import type { Recorded } from "../../runs/files.ts"
import { GigpoError } from "../../util/errors.ts"
import type { RecordedGroup } from "../data/recorded.ts"
import { type DecodedGroup, decodeBlock } from "./decode.ts"
import { type RecordedIteration, readBlock, readSummary, withEpisodesFile } from "./file.ts"
import { episodesPath, recordedIterations } from "./folder.ts"

/** Range of iterations to read. */
export interface EpisodesRange {
  /** Episodes of the training, or of the evaluations after iterations. Default "training". */
  readonly phase?: Recorded | undefined
  /** First iteration. Default: the first recorded one. */
  readonly from?: number | undefined
  /** Last iteration, inclusive. Default: the last recorded one. */
  readonly to?: number | undefined
  /** Called with the error of an unreadable file (`RUN_CORRUPT`) and its iteration, which is skipped. Default: the error is thrown. */
  readonly onUnreadable?: ((error: GigpoError, iteration: number) => void) | undefined
}

const rangeKeys: KeysOf<EpisodesRange> = { phase: true, from: true, to: true, onUnreadable: true }

/**
 * Recorded episodes of a run (`recordEpisodes`), one group at a time, ordered by iteration and task. Iterations that were not recorded
 * are absent. A run in progress may be read: an iteration appears once it is complete.
 *
 * @param run - folder of the run
 * @throws GigpoError `RUN_CORRUPT` for a file that was truncated, modified, or written by another version; `IO`
 */
export async function* readEpisodes(
  run: string,
  range: EpisodesRange = {},
): AsyncGenerator<RecordedGroup, void, undefined> {
  checkArguments("readEpisodes", range, rangeKeys)
  for (const iteration of await iterationsOf(run, range)) {
    try {
      yield* groupsOf(run, iteration, range.phase)
    } catch (error) {
      leaveOut(error, iteration, range)
    }
  }
}

/**
 * Recorded episodes of one task in one iteration; undefined if they were not recorded. Errors as for `readEpisodes`.
 *
 * @param phase - episodes of the training, or of the evaluation after the iteration. Default "training"
 * @param members - episodes whose prompts and completions are read; those of others are empty, which takes a third of the time. Default: all
 */
export async function readGroup(
  run: string,
  iteration: number,
  group: number,
  phase?: Recorded,
  members?: ReadonlySet<number>,
): Promise<RecordedGroup | undefined> {
  checkPath("The folder of the run", run)
  for await (const found of groupsOf(run, iteration, phase, group, members)) if (found.group === group) return found
  return undefined
}

/** Summaries of the recorded iterations, in order, without reading the episodes. Errors as for `readEpisodes`. */
export async function readRecordedIterations(run: string, range: EpisodesRange = {}): Promise<RecordedIteration[]> {
  checkArguments("readRecordedIterations", range, rangeKeys)
  const summaries: RecordedIteration[] = []
  for (const iteration of await iterationsOf(run, range)) {
    const path = episodesPath(run, iteration, range.phase)
    try {
      const found = await withEpisodesFile(path, (file) => readSummary(file, path, iteration))
      if (found) summaries.push(found.summary)
    } catch (error) {
      leaveOut(error, iteration, range)
    }
  }
  return summaries
}

function leaveOut(error: unknown, iteration: number, { onUnreadable }: EpisodesRange): void {
  if (!onUnreadable || !GigpoError.is(error) || error.code !== "RUN_CORRUPT") throw error
  onUnreadable(error, iteration)
}

async function iterationsOf(
  run: string,
  { phase = "training", from = 0, to = Number.POSITIVE_INFINITY }: EpisodesRange,
): Promise<number[]> {
  checkPath("The folder of the run", run)
  if (!(await isThere(run))) throw new GigpoError("IO", `There is no run in ${run}. Pass the folder of a run.`)
  if (phase !== "training" && phase !== "evaluation")
    throw new GigpoError("BAD_ARGUMENT", 'The range of episodes: of must be "training" or "evaluation".')
  return (await recordedIterations(run, phase)).filter((iteration) => iteration >= from && iteration <= to)
}

/** The groups of an iteration, or of the blocks that have episodes of one. */
async function* groupsOf(
  run: string,
  iteration: number,
  of: Recorded | undefined,
  wanted?: number,
  members?: ReadonlySet<number>,
): AsyncGenerator<RecordedGroup, void, undefined> {
  const path = episodesPath(run, iteration, of)
  const { blocks = [] } = (await withEpisodesFile(path, (file) => readSummary(file, path, iteration))) ?? {}
  let open: (DecodedGroup & { readonly bytes: number }) | undefined // may continue in the next block
  for (const block of blocks) {
    if (wanted !== undefined && !block.groups.includes(wanted)) continue
    const room = usualText + mostExpansion * (block.bytes + (open?.bytes ?? 0)) - (open?.characters ?? 0)
    const read = async (file: FileHandle) => decodeBlock(await readBlock(file, block), iteration, room, members)
    for (const { group, characters } of (await withEpisodesFile(path, read)) ?? []) {
      if (open?.group.group === group.group)
        open = {
          group: { ...open.group, episodes: [...open.group.episodes, ...group.episodes] },
          characters: open.characters + characters,
          bytes: open.bytes + block.bytes,
        }
      else {
        if (open) yield open.group
        open = { group, characters, bytes: block.bytes }
      }
    }
  }
  if (open) yield open.group
}

/** Maximum characters of one group's texts, independent of the file's size, and additional ones per byte of the file. */
const [usualText, mostExpansion] = [64 * 2 ** 20, 128]
