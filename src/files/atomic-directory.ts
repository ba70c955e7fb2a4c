import { randomBytes } from "node:crypto"
import { lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { GigpoError } from "../errors.ts"
import { io, ioError, isSystemError } from "./io-error.ts"

/**
 * Makes the folder `target` whole or not at all. `fill` writes into a temporary folder beside it
 * (`<target>.tmp-<random>`), which is flushed to the disk and then renamed. When anything fails (a full disk, `fill`
 * throwing) the temporary folder is removed and what was at `target` stays as it was.
 *
 * With `overwrite`, the old folder steps aside as `<target>.old-<random>` and is removed once the new one is in place.
 * A process killed between these two renames leaves it under that name; one killed earlier leaves the temporary folder.
 * Should the very last steps fail (flushing the parent, removing the old folder), `target` already is the new one.
 *
 * @param options.overwrite - replace what is there; default false, which accepts an empty folder only.
 * @throws GigpoError `IO` when the system cannot write or the target is there already; what `fill` throws, with system
 * errors turned into `IO`.
 */
export async function writeDirectory(
  target: string,
  fill: (temporary: string) => Promise<void>,
  options: { readonly overwrite?: boolean } = {},
): Promise<void> {
  const path = resolve(target)
  const parent = dirname(path)
  const { overwrite = false } = options
  // Only to fail early; the rename decides.
  if (!overwrite && (await isTaken(path))) throw alreadyThere(path)

  const firstMade = await io("create", parent, mkdir(parent, { recursive: true }))
  const suffix = randomBytes(6).toString("hex")
  const temporary = `${path}.tmp-${suffix}`
  await io("create", temporary, mkdir(temporary))
  let replaced: string | undefined
  try {
    await fill(temporary)
    await flushTree(temporary)
    if (overwrite && (await isTaken(path))) {
      await rename(path, `${path}.old-${suffix}`)
      replaced = `${path}.old-${suffix}`
    }
    await rename(temporary, path)
  } catch (cause) {
    // What went wrong first is what the caller must hear of, unless the old folder cannot be put back.
    await rm(temporary, { recursive: true, force: true }).catch(() => {})
    if (replaced) await io(`rename ${replaced} back to`, path, rename(replaced, path))
    if (isSystemError(cause) && (cause.code === "ENOTEMPTY" || cause.code === "EEXIST") && cause.syscall === "rename") {
      throw alreadyThere(path, cause)
    }
    throw isSystemError(cause) ? ioError("write", path, cause) : cause
  }
  // A rename, and a folder made on the way, last only when the folder that holds the name is on the disk.
  const top = firstMade === undefined ? parent : dirname(firstMade)
  for (let folder = parent; ; folder = dirname(folder)) {
    await io("flush", folder, flush(folder))
    if (folder === top) break
  }
  if (replaced) await io("remove the old", replaced, rm(replaced, { recursive: true, force: true }))
}

/** Whether something is there that a rename must not or cannot replace. An empty folder is not. */
async function isTaken(path: string): Promise<boolean> {
  try {
    return !(await lstat(path)).isDirectory() || (await readdir(path)).length > 0
  } catch (cause) {
    if (isSystemError(cause) && cause.code === "ENOENT") return false
    throw ioError("look at", path, cause)
  }
}

function alreadyThere(path: string, cause?: unknown): GigpoError {
  const message = `${path} is already there. Choose another name, remove it, or allow it to be overwritten.`
  return new GigpoError("IO", message, { cause })
}

/** Flushes files before the folders that hold them. */
async function flushTree(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) await flushTree(path)
    else if (entry.isFile()) await flush(path)
  }
  await flush(folder)
}

async function flush(path: string): Promise<void> {
  // Windows can neither open a folder nor flush a file that is open for reading only.
  if (process.platform === "win32") return
  const handle = await open(path, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
