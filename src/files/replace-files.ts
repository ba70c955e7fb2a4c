import { mkdir, rename, rm, rmdir, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { flush, flushTree } from "./flush.ts"
import { inside, namesIn } from "./inside.ts"
import { io, isThere, translated } from "./io-error.ts"
import { isRunning } from "./lock.ts"
import { compareFile, readWritten, readyFolder as ready, type Written } from "./manifest.ts"
import { moveFiles, refuseForeign, removeEmptyFolders } from "./own-files.ts"
import { checkSealed, isSealedName, removeSealed, seal, sealedName } from "./seal.ts"

// Files in a folder with others' files are replaced in three steps, so that a crash leaves all the old ones or all the new ones:
// the new ones are written into a folder inside; its renaming to `.gigpo-ready` is the moment from which they count; they move to their places.
// After a crash the third is finished by what opens the folder next (`settleFolder`), if the journal of this machine knows it.

const unfinished = /^\.gigpo-new-(\d+)-[0-9a-f]{24}$/

/**
 * Writes files into a folder that is there, in place of those that this package wrote. `fill` gets an empty folder and leaves a
 * manifest in it.
 *
 * @throws GigpoError `FILE_EXISTS` where a foreign file is in the way; all is as it was then.
 */
export async function replaceFiles(folder: string, fill: (staging: string) => Promise<void>): Promise<void> {
  await removeUnfinished(folder)
  const staging = await sealedName(join(folder, `.gigpo-new-${process.pid}-`))
  await mkdir(staging)
  try {
    await fill(staging)
    const { files, text } = (await readWritten(staging))!
    await refuseForeign(folder, [...files.map(({ name }) => name), ready])
    await seal(staging, folder, text)
    await flushTree(staging)
    await rename(staging, join(folder, ready))
  } catch (error) {
    await rm(staging, { recursive: true, force: true }).catch(() => {})
    throw error
  }
  await flush(folder)
  await settleFolder(folder)
}

export interface SettleOptions {
  /** Take over what this machine's journal does not know. Default false. */
  readonly accept?: boolean
  /** Remove the empty folder that an interrupted removal leaves; opening for reading lets it be. Default false. */
  readonly tidy?: boolean
}

/**
 * Brings the files that are ready to their places, where a crash left that undone. Returns whether it did.
 *
 * @throws GigpoError `UNFINISHED_WRITE` where this machine's journal does not know of it, `UNSAFE_PATH`; nothing has been changed then.
 */
export async function settleFolder(
  folder: string,
  { accept = false, tidy = false }: SettleOptions = {},
): Promise<boolean> {
  const source = await inside(folder, ready)
  if ((await namesIn(source)).length === 0) {
    if (tidy && (await isThere(source))) await io("remove", source, rmdir(source))
    return false
  }
  // Its manifest moves last: where it has gone, all has.
  const written = await readWritten(source)
  const text = (written ?? (await readWritten(folder)))?.text ?? ""
  if (!accept) await checkSealed(source, folder, text)
  await translated(folder, moveToPlaces(source, folder, written))
  return true
}

async function moveToPlaces(source: string, folder: string, written: Written | undefined): Promise<void> {
  if (written) {
    const names = written.files.map(({ name }) => name)
    for (const name of [...names, written.manifest]) await inside(folder, name) // before the first is removed
    await removeOutdated(folder, new Set([...names, written.manifest]))
    await moveFiles(source, folder, names)
    for (const place of new Set(names.map((name) => dirname(name)))) await flush(join(folder, place))
    await moveFiles(source, folder, [written.manifest])
  }
  await removeSealed(source)
  await flush(folder)
}

/** Removes files of an older manifest that have no successor; one that was changed since stays. */
async function removeOutdated(folder: string, successors: ReadonlySet<string>): Promise<void> {
  const old = await readWritten(folder)
  if (!old) return
  const outdated = old.files.filter(({ name }) => !successors.has(name))
  const unchanged: string[] = []
  for (const file of outdated) if ((await compareFile(folder, file)) === "same") unchanged.push(file.name)
  for (const name of unchanged) await rm(await inside(folder, name), { force: true })
  await removeEmptyFolders(
    folder,
    outdated.map(({ name }) => name),
  )
}

/** A process of another machine cannot be looked at; it does not write for as long. */
const abandoned = 24 * 3600 * 1000

/** Removes what processes of this user that are dead were writing. */
async function removeUnfinished(folder: string): Promise<void> {
  for (const name of await namesIn(folder)) {
    const pid = unfinished.exec(name)?.[1]
    const path = join(folder, name)
    if (pid === undefined || isRunning(Number(pid)) || !(await isSealedName(path))) continue
    const { mtimeMs } = await stat(path)
    if (Date.now() - mtimeMs > abandoned) await rm(path, { recursive: true, force: true })
  }
}
