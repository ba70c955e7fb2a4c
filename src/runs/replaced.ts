import { mkdir, rename, rm, rmdir } from "node:fs/promises"
import { join } from "node:path"
import { flush, flushTree } from "../files/flush.ts"
import { inside, namesIn } from "../files/inside.ts"
import { io } from "../files/io-error.ts"
import { listFiles, readWritten } from "../files/manifest.ts"
import { moveFiles, moveOwn, removeEmptyFolders } from "../files/own-files.ts"
import { type SettleOptions, settleFolder } from "../files/replace-files.ts"
import { checkSealed, isSealFile, removeSealed, removeTemporaries, seal, temporaryOf } from "../files/seal.ts"
import { isEventFile, isWandbFile, readEpisodesFile, runFiles } from "./files.ts"

// An overwritten run is kept in a subfolder of its folder until the new run has a checkpoint or a model. If the new run ends before, the
// old one is restored. Files of others are not moved. Each step ends with a rename, so that the state after a crash is known from the
// names in the folder. Subfolders are recognized by a seal, which is in the journal of this machine; others are not touched.

const moving = ".gigpo-replacing" // contains parts of the old run; there are no files of the new run yet
const aside = ".gigpo-replaced" // contains the whole old run
const discarded = ".gigpo-discarded"
/** Text of the seal. */
const sealed = "replaced run"

const ownFiles = [runFiles.metrics, runFiles.fork, runFiles.mlflow, runFiles.trackio, runFiles.config]
/** Names of folders with a manifest, in the run and in the folder of checkpoints. */
const ownFolder = new RegExp(`^(${runFiles.model}|failure-\\d+)$`)
const ownCheckpoint = /^(iteration|update|suspect)-\d+(-\d+)?$/

/** Folders of observers, with a test for the files that belong to the run. */
const filled: readonly (readonly [folder: string, isOwn: (name: string) => boolean])[] = [
  [runFiles.episodes, (name) => readEpisodesFile(name) !== undefined],
  [runFiles.tensorboard, isEventFile],
  [runFiles.wandb, isWandbFile],
]

/** Whether the entries of a folder show an unfinished replacement of a run. */
export function isBeingReplaced(entries: readonly string[]): boolean {
  return [moving, aside, discarded].some((name) => entries.includes(name))
}

/** Moves a run into a subfolder of its folder. Throws `UNSAFE_PATH` for a path of the run that contains a link. */
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

/** Restores the old run, if there is one, in place of the new one. */
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

/** Removes the old run. */
export async function discardReplaced(run: string): Promise<void> {
  await renamed(run, aside, discarded)
  await removeSealed(join(run, discarded))
}

/** Removes a closed run, and its folder if nothing else is in it. */
export async function removeRun(run: string): Promise<void> {
  await setRunAside(run)
  await removeEmptyFolders(join(run, runFiles.checkpoints), [])
  await discardReplaced(run)
  await removeEmptyFolders(run, [])
}

/**
 * Completes a replacement after a crash: removes the old run if the new one has a checkpoint or a model, otherwise restores the old run.
 *
 * @returns whether the old run was restored
 * @throws GigpoError `UNFINISHED_WRITE` for a replacement that the journal of this machine does not know, `UNSAFE_PATH` for a link. Nothing
 * has been changed then.
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

/** Whether a folder contains an old run that is being replaced. */
export async function hasReplaced(run: string): Promise<boolean> {
  return isBeingReplaced(await namesIn(run))
}

/** Checks that a subfolder was made by this user on this machine. An empty one, which an interrupted removal leaves, is removed. */
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

/** Moves all files of the subfolder back to the run. */
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

/** Files of the run in the folders of observers. */
async function filesInFolders(run: string): Promise<string[]> {
  const files: string[] = []
  for (const [folder, isOwn] of filled)
    for (const name of await namesIn(run, folder)) if (isOwn(name)) files.push(`${folder}/${name}`)
  return files
}

async function removeEmptied(run: string): Promise<void> {
  for (const [folder] of filled) await removeEmptyFolders(join(run, folder), [])
}
