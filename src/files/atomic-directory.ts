import { lstat, mkdir, readdir, realpath, rename, rm, stat } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import { GigpoError } from "../util/errors.ts"
import { flush, flushTree } from "./flush.ts"
import { io, ioError, isMissing, isSystemError, translated } from "./io-error.ts"
import { folderManifest, writeManifest } from "./manifest.ts"
import { refuseForeign } from "./own-files.ts"
import { lookAt } from "./regular-file.ts"
import { replaceFiles, settleFolder } from "./replace-files.ts"
import { temporaryOf } from "./seal.ts"

export interface DirectoryOptions {
  /** Replace what this package wrote there. Default false, which accepts an empty folder only. */
  readonly overwrite?: boolean | undefined
  /** The file that tells what was written into the folder; "none" is for folders that are never replaced. Default gigpo.json. */
  readonly manifest?: string
}

/** Writes files into an empty folder. An object that it returns stands in the manifest beside their names. */
export type Fill = (temporary: string) => Promise<unknown>

/**
 * Makes the folder `target` whole or not at all. `fill` writes into a temporary folder (`<target>.tmp-<random>`), which gets a
 * manifest, is flushed to the disk and then renamed. When anything fails (a full disk, `fill` throwing) the temporary folder is
 * removed and what was at `target` stays as it was.
 *
 * With `overwrite` the files that a manifest names are replaced, all at once, and all others stay. One that is in the way of a new
 * file, or that was changed since it was written, is refused. Should the very last steps fail, `target` already is the new one,
 * or becomes it when it is used next.
 *
 * @throws GigpoError `FILE_EXISTS` when something is in the way, `IO` when the system cannot write; what `fill` throws, with
 * system errors turned into `IO`.
 */
export async function writeDirectory(target: string, fill: Fill, options: DirectoryOptions = {}): Promise<void> {
  const { overwrite = false, manifest = folderManifest } = options
  const path = await checkTarget(target, { overwrite })
  const complete = async (temporary: string): Promise<void> => {
    const about = await fill(temporary)
    if (manifest !== "none") await writeManifest(temporary, manifest, Object(about))
  }
  // Without it the rename decides, whoever came meanwhile.
  if (overwrite && (await isTaken(path))) await translated(path, replaceFiles(path, complete))
  else await makeDirectory(path, complete)
}

/**
 * Refuses a target that `writeDirectory` would refuse, before anything is computed for it, and finishes what a crash left undone
 * there. Returns its path, where a link leads.
 *
 * @param options.names - files that will be written.
 */
export async function checkTarget(
  target: string,
  { overwrite = false, names = [] }: { readonly overwrite?: boolean | undefined; readonly names?: readonly string[] },
): Promise<string> {
  const path = await resolveFolder(target)
  await settleFolder(path, { tidy: true })
  if (!(await isTaken(path))) return path
  if (!overwrite || !(await stat(path)).isDirectory()) throw alreadyThere(path, overwrite)
  await translated(path, refuseForeign(path, names))
  return path
}

/** The absolute path of a folder that need not be there, where a link leads. */
export async function resolveFolder(target: string): Promise<string> {
  const path = resolve(target)
  try {
    return await realpath(path)
  } catch (cause) {
    if (!isMissing(cause)) throw ioError("look at", path, cause)
    const found = await io("look at", path, lookAt(path))
    if (found && !found.isSymbolicLink()) return await resolveFolder(path) // it was made meanwhile
    if (found) throw new GigpoError("IO", `${path} is a link that leads nowhere. Make its folder, or remove it.`)
    const parent = dirname(path)
    return parent === path ? path : join(await resolveFolder(parent), basename(path))
  }
}

/** The way of a folder that is not there, or empty. */
async function makeDirectory(path: string, fill: (temporary: string) => Promise<void>): Promise<void> {
  const parent = dirname(path)
  const firstMade = await io("create", parent, mkdir(parent, { recursive: true }))
  const temporary = await io("create", path, temporaryOf(path))
  await io("create", temporary, mkdir(temporary))
  try {
    await fill(temporary)
    await flushTree(temporary)
    await rename(temporary, path)
  } catch (cause) {
    // What went wrong first is what the caller must hear of.
    await rm(temporary, { recursive: true, force: true }).catch(() => {})
    if (isSystemError(cause) && (cause.code === "ENOTEMPTY" || cause.code === "EEXIST") && cause.syscall === "rename")
      throw alreadyThere(path, false, cause)
    throw isSystemError(cause) ? ioError("write", path, cause) : cause
  }
  // A rename, and a folder made on the way, last only when the folder that holds the name is on the disk.
  const top = firstMade === undefined ? parent : dirname(firstMade)
  for (let folder = parent; ; folder = dirname(folder)) {
    await io("flush", folder, flush(folder))
    if (folder === top) break
  }
}

/** Whether something is there that a rename must not or cannot replace. An empty folder is not. */
async function isTaken(path: string): Promise<boolean> {
  try {
    return !(await lstat(path)).isDirectory() || (await readdir(path)).length > 0
  } catch (cause) {
    if (isMissing(cause)) return false
    throw ioError("look at", path, cause)
  }
}

function alreadyThere(path: string, overwrite: boolean, cause?: unknown): GigpoError {
  const way = overwrite
    ? "It is no folder: choose another name."
    : "Choose another name, remove it, or allow it to be overwritten (--overwrite, overwrite: true)."
  return new GigpoError("FILE_EXISTS", `${path} is already there. ${way}`, { cause })
}
