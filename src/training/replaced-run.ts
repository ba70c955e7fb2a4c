import { mkdir, readdir, rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { flush } from "../files/flush.ts"
import { io, isMissing } from "../files/io-error.ts"
import { listFiles, readWritten } from "../files/manifest.ts"
import { moveFiles, moveOwn, removeEmptyFolders } from "../files/own-files.ts"
import { settleFolder } from "../files/replace-files.ts"
import { isEventFile, readEpisodesFile, runFiles } from "./run-files.ts"

// A run that is overwritten is set aside in its own folder until the new one is worth more: until it has a checkpoint or a model. Ends
// the new one before, the old one comes back. Files that others put there stay where they are. Each step ends with a renaming, so
// that a crash between any two is seen from the names that are there.

const moving = ".gigpo-replacing" // some of the old run is in here, and nothing of the new one is outside
const aside = ".gigpo-replaced" // all of it
const discarded = ".gigpo-discarded"

const ownFiles = [runFiles.metrics, runFiles.fork, runFiles.mlflow, runFiles.config]
/** Folders with manifests of their own, and those in the folder of checkpoints. */
const ownFolder = new RegExp(`^(${runFiles.model}|failure-\\d+)$`)
const ownCheckpoint = /^(step|suspect)-\d+(-\d+)?$/

/** Folders that observers fill, and which of the files there are a run's own. */
const filled: readonly (readonly [folder: string, isOwn: (name: string) => boolean])[] = [
  [runFiles.episodes, (name) => readEpisodesFile(name) !== undefined],
  [runFiles.tensorboard, isEventFile],
]

/** Whether entries of a folder are those of a run that was being replaced. */
export function isBeingReplaced(entries: readonly string[]): boolean {
  return [moving, aside, discarded].some((name) => entries.includes(name))
}

/** Sets the run aside. */
export async function setRunAside(run: string): Promise<void> {
  const to = join(run, moving)
  await io("create", to, mkdir(to))
  for (const name of (await namesIn(run)).filter((one) => ownFolder.test(one)))
    await moveOwn(join(run, name), join(to, name))
  const [checkpoints, place] = [join(run, runFiles.checkpoints), join(to, runFiles.checkpoints)]
  for (const name of (await namesIn(checkpoints)).filter((one) => ownCheckpoint.test(one)))
    await moveOwn(join(checkpoints, name), join(place, name))
  await moveFiles(run, to, [...(await filesInFolders(run)), ...ownFiles])
  await removeEmptied(run)
  await renamed(run, moving, aside)
}

/** Brings back the run that was set aside, where there is one, in place of what has begun since. */
async function bringRunBack(run: string): Promise<void> {
  if (!(await has(run, aside))) return
  for (const name of [...(await filesInFolders(run)), ...ownFiles])
    await io("remove", join(run, name), rm(join(run, name), { force: true }))
  await removeEmptied(run)
  await renamed(run, aside, moving)
  await moveBack(run)
}

/** Removes the run that was set aside. */
export async function discardReplaced(run: string): Promise<void> {
  await renamed(run, aside, discarded)
  await removeDiscarded(run)
}

/** Removes a run that has served its purpose and is closed, and its folder where nothing else is in it. */
export async function removeRun(run: string): Promise<void> {
  await setRunAside(run)
  await removeEmptyFolders(join(run, runFiles.checkpoints), [])
  await discardReplaced(run)
  await removeEmptyFolders(run, [])
}

/**
 * Finishes what a crash left undone: the old run comes back, which it returns, or goes where the new one has a checkpoint or a model.
 */
export async function settleRun(run: string): Promise<boolean> {
  await removeDiscarded(run)
  const left = await has(run, moving)
  if (left) await moveBack(run)
  if (!(await has(run, aside))) return left
  const whole = await isWhole(run)
  await (whole ? discardReplaced(run) : bringRunBack(run))
  return !whole
}

async function isWhole(run: string): Promise<boolean> {
  const checkpoints = join(run, runFiles.checkpoints)
  const steps = (await namesIn(checkpoints)).filter((name) => ownCheckpoint.test(name))
  for (const folder of [join(run, runFiles.model), ...steps.map((name) => join(checkpoints, name))]) {
    await settleFolder(folder)
    if (await readWritten(folder)) return true
  }
  return false
}

/** All that is in there is the old run's. */
async function moveBack(run: string): Promise<void> {
  await moveFiles(join(run, moving), run, await listFiles(join(run, moving)))
  await io("flush", run, flush(run))
  await io("remove", join(run, moving), rm(join(run, moving), { recursive: true, force: true }))
}

async function removeDiscarded(run: string): Promise<void> {
  await io("remove", join(run, discarded), rm(join(run, discarded), { recursive: true, force: true }))
}

async function renamed(run: string, from: string, to: string): Promise<void> {
  await io("rename", join(run, from), rename(join(run, from), join(run, to)))
  await io("flush", run, flush(run))
}

async function has(folder: string, name: string): Promise<boolean> {
  return (await namesIn(folder)).includes(name)
}

/** Of the folders that observers fill. */
async function filesInFolders(run: string): Promise<string[]> {
  const files: string[] = []
  for (const [folder, isOwn] of filled)
    for (const name of await namesIn(join(run, folder))) if (isOwn(name)) files.push(`${folder}/${name}`)
  return files
}

async function removeEmptied(run: string): Promise<void> {
  for (const [folder] of filled) await removeEmptyFolders(join(run, folder), [])
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (cause) {
    if (isMissing(cause)) return []
    return await io("read", folder, Promise.reject(cause))
  }
}
