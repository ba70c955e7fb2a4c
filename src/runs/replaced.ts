import { mkdir, rename, rm, rmdir } from "node:fs/promises"
import { join } from "node:path"
import { flush, flushTree } from "../files/flush.ts"
import { inside, namesIn } from "../files/inside.ts"
import { io } from "../files/io-error.ts"
import { listFiles, readWritten } from "../files/manifest.ts"
import { moveFiles, moveOwn, removeEmptyFolders } from "../files/own-files.ts"
import { type SettleOptions, settleFolder } from "../files/replace-files.ts"
import { checkSealed, isSealFile, removeSealed, removeTemporaries, seal, temporaryOf } from "../files/seal.ts"
import { isEventFile, readEpisodesFile, runFiles } from "./files.ts"

// A run that is overwritten is set aside in its own folder until the new one is worth more: until it has a checkpoint or a model. Ends
// the new one before, the old one comes back. Files that others put there stay where they are. Each step ends with a renaming, so
// that a crash between any two is seen from the names that are there. The journal of this machine knows the folder by its seal: no
// other is acted on.

const moving = ".gigpo-replacing" // some of the old run is in here, and nothing of the new one is outside
const aside = ".gigpo-replaced" // all of it
const discarded = ".gigpo-discarded"
/** What their seal says. */
const sealed = "replaced run"

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

/** Sets the run aside. Throws `UNSAFE_PATH` where a name of the run leads through a link. */
export async function setRunAside(run: string): Promise<void> {
  const to = await inside(run, moving)
  const temporary = await io("create", to, temporaryOf(to))
  await io("create", temporary, mkdir(temporary))
  await io(
    "write",
    temporary,
    seal(temporary, run, sealed).then(() => flushTree(temporary)),
  )
  await io("create", to, rename(temporary, to))
  for (const name of (await namesIn(run)).filter((one) => ownFolder.test(one)))
    await moveOwn(await inside(run, name), join(to, name))
  const [checkpoints, place] = [join(run, runFiles.checkpoints), join(to, runFiles.checkpoints)]
  for (const name of await checkpointsIn(run)) await moveOwn(join(checkpoints, name), join(place, name))
  await moveFiles(run, to, [...(await filesInFolders(run)), ...ownFiles])
  await removeEmptied(run)
  await renamed(run, moving, aside)
}

/** Brings back the run that was set aside, where there is one, in place of what has begun since. */
async function bringRunBack(run: string): Promise<void> {
  if (!(await has(run, aside))) return
  for (const name of [...(await filesInFolders(run)), ...ownFiles]) {
    const place = await inside(run, name)
    await io("remove", place, rm(place, { force: true }))
  }
  await removeEmptied(run)
  await renamed(run, aside, moving)
  await moveBack(run)
}

/** Removes the run that was set aside. */
export async function discardReplaced(run: string): Promise<void> {
  await renamed(run, aside, discarded)
  await removeSealed(join(run, discarded))
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
 *
 * @throws GigpoError `UNFINISHED_WRITE` where this machine's journal does not know of it, `UNSAFE_PATH`; nothing has been changed then.
 */
export async function settleRun(run: string, options: SettleOptions = {}): Promise<boolean> {
  for (const name of [moving, aside, discarded]) await checkLeft(run, name, options)
  await removeTemporaries(
    run,
    (await namesIn(run)).filter((name) => name.includes(".tmp-")),
  )
  if (await has(run, discarded)) await removeSealed(join(run, discarded))
  const left = await has(run, moving)
  if (left) await moveBack(run)
  if (!(await has(run, aside))) return left
  const whole = await isWhole(run, options)
  await (whole ? discardReplaced(run) : bringRunBack(run))
  return !whole
}

/** Whether a run is there that was set aside. */
export async function hasReplaced(run: string): Promise<boolean> {
  return isBeingReplaced(await namesIn(run))
}

/** Refuses a folder that was not set aside by this user on this machine. An empty one has nothing, and is what removing it leaves. */
async function checkLeft(run: string, name: string, { accept = false }: SettleOptions): Promise<void> {
  const folder = await inside(run, name)
  if (!(await has(run, name))) return
  if ((await namesIn(folder)).length === 0) await io("remove", folder, rmdir(folder))
  else if (!accept) await checkSealed(folder, run, sealed)
}

async function isWhole(run: string, options: SettleOptions): Promise<boolean> {
  for (const name of [runFiles.model, ...(await checkpointsIn(run)).map((one) => `${runFiles.checkpoints}/${one}`)]) {
    const folder = await inside(run, name)
    await settleFolder(folder, options)
    if (await readWritten(folder)) return true
  }
  return false
}

async function checkpointsIn(run: string): Promise<string[]> {
  const names = (await namesIn(run, runFiles.checkpoints)).filter((name) => ownCheckpoint.test(name))
  for (const name of names) await inside(run, `${runFiles.checkpoints}/${name}`)
  return names
}

/** All that is in there is the old run's. */
async function moveBack(run: string): Promise<void> {
  const names = await listFiles(join(run, moving))
  await moveFiles(
    join(run, moving),
    run,
    names.filter((name) => !isSealFile(name)),
  )
  await io("flush", run, flush(run))
  await removeSealed(join(run, moving))
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
    for (const name of await namesIn(run, folder)) if (isOwn(name)) files.push(`${folder}/${name}`)
  return files
}

async function removeEmptied(run: string): Promise<void> {
  for (const [folder] of filled) await removeEmptyFolders(join(run, folder), [])
}
