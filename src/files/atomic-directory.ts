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
  /** Replace what gigpo wrote there. Default false: only an empty folder is accepted. */
  readonly overwrite?: boolean | undefined
  /** Name of the manifest; "none" for folders that are never replaced. Default gigpo.json. */
  readonly manifest?: string
}

/** Writes files into an empty folder. A returned object is stored in the manifest. */
export type Fill = (temporary: string) => Promise<unknown>

/**
 * Creates the folder `target` atomically. `fill` writes into a temporary folder (`<target>.tmp-<random>`), which gets a
 * manifest, is flushed to disk and then renamed. If anything fails (a full disk, `fill` throwing), the temporary folder
 * is removed and `target` stays unchanged.
 * With `overwrite`, the files named by an existing manifest are replaced together, and all others stay. A foreign or
 * changed file in the way is rejected. If the very last steps fail, `target` is already new, or becomes new when it is
 * used next.
 *
 * @throws GigpoError `FILE_EXISTS` if something is in the way, `IO` if the system cannot write; errors of `fill`, with
 * system errors turned into `IO`.
 */
export async function writeDirectory(target: string, fill: Fill, options: DirectoryOptions = {}): Promise<void> {
  const { overwrite = false, manifest = folderManifest } = options
  const path = await checkTarget(target, { overwrite })
  const complete = async (temporary: string): Promise<void> => {
    const about = await fill(temporary)
    if (manifest !== "none") await writeManifest(temporary, manifest, Object(about))
  }
  // Otherwise rename() decides, even if another process created the folder meanwhile.
  if (overwrite && (await isTaken(path))) await translated(path, replaceFiles(path, complete))
  else await makeDirectory(path, complete)
}

/**
 * Rejects a target that `writeDirectory` would reject, before anything is computed, and finishes an interrupted write
 * there. Returns its path with links resolved.
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

/** Absolute path of a folder that need not exist, with links resolved. */
export async function resolveFolder(target: string): Promise<string> {
  const path = resolve(target)
  try {
    return await realpath(path)
  } catch (cause) {
    if (!isMissing(cause)) throw ioError("look at", path, cause)
    const found = await io("look at", path, lookAt(path))
    if (found && !found.isSymbolicLink()) return await resolveFolder(path) // created meanwhile
    if (found) throw new GigpoError("IO", `${path} is a broken link. Create its target folder, or remove the link.`)
    const parent = dirname(path)
    return parent === path ? path : join(await resolveFolder(parent), basename(path))
  }
}

/** Creates a folder that is missing or empty. */
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
    // Report the first error.
    await rm(temporary, { recursive: true, force: true }).catch(() => {})
    if (isSystemError(cause) && (cause.code === "ENOTEMPTY" || cause.code === "EEXIST") && cause.syscall === "rename")
      throw alreadyThere(path, false, cause)
    throw isSystemError(cause) ? ioError("write", path, cause) : cause
  }
  // A rename and a new folder are durable only once the parent folder is flushed.
  const top = firstMade === undefined ? parent : dirname(firstMade)
  for (let folder = parent; ; folder = dirname(folder)) {
    await io("flush", folder, flush(folder))
    // On Windows, mkdir() names the folder that it made first in another form (\\?\C:\…), which never equals these.
    if (folder === top || folder === dirname(folder)) break
  }
}

/** Whether something exists that a rename must not or cannot replace. An empty folder can be replaced. */
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
    ? "It is not a folder: choose another name."
    : "Choose another name, remove it, or allow it to be overwritten (--overwrite, overwrite: true)."
  return new GigpoError("FILE_EXISTS", `${path} already exists. ${way}`, { cause })
}
