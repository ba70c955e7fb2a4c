import { rm } from "node:fs/promises"
import { join } from "node:path"
import { insideParent, namesIn } from "../../files/inside.ts"
import { io } from "../../files/io-error.ts"
import { removeTemporaries } from "../../files/seal.ts"
import { episodesFile, readEpisodesFile, runFiles } from "../../runs/files.ts"

// Folder with the recorded episodes of a run, one file per iteration.

export function episodesPath(run: string, iteration: number): string {
  return join(run, runFiles.episodes, episodesFile(iteration))
}

/** Recorded iterations of a run, in ascending order. */
export async function recordedIterations(run: string): Promise<number[]> {
  const found = (await namesIn(run, runFiles.episodes)).map(readEpisodesFile).filter((file) => file?.whole)
  return found.map((file) => file!.iteration).sort((a, b) => a - b)
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

/** Removes all but the `keep` newest recorded iterations. */
export async function pruneRecord(run: string, keep: number): Promise<void> {
  for (const iteration of (await recordedIterations(run)).slice(0, -keep)) await remove(episodesPath(run, iteration))
}

async function remove(path: string): Promise<void> {
  await insideParent(path)
  await io("remove", path, rm(path, { force: true }))
}
