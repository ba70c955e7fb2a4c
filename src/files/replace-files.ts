import { randomBytes } from "node:crypto"
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { flush, flushTree } from "./flush.ts"
import { io, isThere } from "./io-error.ts"
import { isRunning } from "./lock.ts"
import { compareFile, readWritten } from "./manifest.ts"
import { moveFiles, refuseForeign, removeEmptyFolders } from "./own-files.ts"

// Files in a folder with others' files are replaced in three steps, so that a crash leaves all the old ones or all the new ones:
// the new ones are written into a folder inside; its renaming to `ready` is the moment from which they count; they move to their places.
// Whoever comes to the folder after a crash finishes the third (`settleFolder`).

const ready = ".gigpo-ready"
const unfinished = /^\.gigpo-new-(\d+)-[0-9a-f]{12}$/

/**
 * Writes files into a folder that is there, in place of those that this package wrote. `fill` gets an empty folder and leaves a
 * manifest in it.
 *
 * @throws GigpoError `FILE_EXISTS` where a foreign file is in the way; all is as it was then.
 */
export async function replaceFiles(folder: string, fill: (staging: string) => Promise<void>): Promise<void> {
  await removeUnfinished(folder)
  const staging = join(folder, `.gigpo-new-${process.pid}-${randomBytes(6).toString("hex")}`)
  await mkdir(staging)
  try {
    await fill(staging)
    const { files } = (await readWritten(staging))!
    await refuseForeign(folder, [...files.map(({ name }) => name), ready])
    await flushTree(staging)
    await rename(staging, join(folder, ready))
  } catch (error) {
    await rm(staging, { recursive: true, force: true }).catch(() => {})
    throw error
  }
  await flush(folder)
  await settleFolder(folder)
}

/** Brings the files that are ready to their places, where a crash left that undone. */
export async function settleFolder(folder: string): Promise<void> {
  const source = join(folder, ready)
  if (await isThere(source)) await io("write", folder, moveToPlaces(source, folder))
}

async function moveToPlaces(source: string, folder: string): Promise<void> {
  // Its manifest moves last: where it has gone, all has.
  const written = await readWritten(source)
  if (written) {
    const names = written.files.map(({ name }) => name)
    await removeOutdated(folder, new Set([...names, written.manifest]))
    await moveFiles(source, folder, names)
    for (const place of new Set(names.map((name) => dirname(name)))) await flush(join(folder, place))
    await moveFiles(source, folder, [written.manifest])
  }
  await io("remove", source, rm(source, { recursive: true, force: true }))
  await flush(folder)
}

/** Removes files of an older manifest that have no successor; one that was changed since stays. */
async function removeOutdated(folder: string, successors: ReadonlySet<string>): Promise<void> {
  const old = await readWritten(folder)
  if (!old) return
  const outdated = old.files.filter(({ name }) => !successors.has(name))
  for (const file of outdated)
    if ((await compareFile(folder, file)) === "same") await rm(join(folder, file.name), { force: true })
  await removeEmptyFolders(
    folder,
    outdated.map(({ name }) => name),
  )
}

/** A process of another machine cannot be looked at; it does not write for as long. */
const abandoned = 24 * 3600 * 1000

/** Removes what processes that are dead were writing. */
async function removeUnfinished(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const pid = unfinished.exec(name)?.[1]
    if (pid === undefined || isRunning(Number(pid))) continue
    const { mtimeMs } = await stat(join(folder, name))
    if (Date.now() - mtimeMs > abandoned) await rm(join(folder, name), { recursive: true, force: true })
  }
}
