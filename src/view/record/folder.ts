import { readdir, rm } from "node:fs/promises"
import { join } from "node:path"
import { io, isMissing } from "../../files/io-error.ts"
import { episodesFile, readEpisodesFile, runFiles } from "../../training/run-files.ts"

// The folder of a run in which the recorded episodes lie, one file an iteration.

export function episodesPath(run: string, iteration: number): string {
  return join(run, runFiles.episodes, episodesFile(iteration))
}

/** The iterations of a run that were recorded, in ascending order. */
export async function recordedIterations(run: string): Promise<number[]> {
  const found = (await namesIn(run)).map(readEpisodesFile).filter((file) => file?.whole)
  return found.map((file) => file!.iteration).sort((a, b) => a - b)
}

/** Removes what was recorded after `iteration`, which will come again, and what was never finished. */
export async function cutRecordBack(run: string, iteration: number): Promise<void> {
  for (const name of await namesIn(run)) {
    const file = readEpisodesFile(name)
    if (file && (!file.whole || file.iteration > iteration)) await remove(join(run, runFiles.episodes, name))
  }
}

/** Removes all but the `keep` newest recorded iterations. */
export async function pruneRecord(run: string, keep: number): Promise<void> {
  for (const iteration of (await recordedIterations(run)).slice(0, -keep)) await remove(episodesPath(run, iteration))
}

async function remove(path: string): Promise<void> {
  await io("remove", path, rm(path, { force: true }))
}

async function namesIn(run: string): Promise<string[]> {
  const folder = join(run, runFiles.episodes)
  try {
    return await readdir(folder)
  } catch (cause) {
    if (isMissing(cause)) return []
    return await io("read", folder, Promise.reject(cause))
  }
}
