import { rm } from "node:fs/promises"
import { join } from "node:path"
import { insideParent, namesIn } from "../../files/inside.ts"
import { io } from "../../files/io-error.ts"
import { removeTemporaries } from "../../files/seal.ts"
import { episodesFile, type Recorded, readEpisodesFile, runFiles } from "../../runs/files.ts"

// Folder with the recorded episodes of a run, one file per iteration, and one per evaluation.

export function episodesPath(run: string, iteration: number, of?: Recorded): string {
  return join(run, runFiles.episodes, episodesFile(iteration, of))
}

/** Recorded iterations of a run, or those with recorded evaluations, in ascending order. */
export async function recordedIterations(run: string, of: Recorded = "training"): Promise<number[]> {
  const found = (await namesIn(run, runFiles.episodes)).map(readEpisodesFile)
  return found.flatMap((file) => (file?.whole && file.of === of ? [file.iteration] : [])).sort((a, b) => a - b)
}

/** Removes recordings after `iteration`, which will be repeated, and incomplete files of killed processes. */
export async function cutRecordBack(run: string, iteration: number): Promise<void> {
  const names = await namesIn(run, runFiles.episodes)
  for (const name of names) {
    const file = readEpisodesFile(name)
    if (file?.whole && file.iteration > iteration) await remove(join(run, runFiles.episodes, name))
  }
  await removeTemporaries(
    join(run, runFiles.episodes),
    names.filter((name) => readEpisodesFile(name)?.whole === false),
  )
}

/** Removes all but the `keep` newest recorded iterations, or evaluations. */
export async function pruneRecord(run: string, keep: number, of: Recorded): Promise<void> {
  for (const iteration of (await recordedIterations(run, of)).slice(0, -keep))
    await remove(episodesPath(run, iteration, of))
}

async function remove(path: string): Promise<void> {
  await insideParent(path)
  await io("remove", path, rm(path, { force: true }))
}
