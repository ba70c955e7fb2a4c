import files, { open, rm, stat } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { GigpoError } from "../util/errors.ts"
import { formatBytes } from "./format-bytes.ts"
import { io, ioError, isSystemError } from "./io-error.ts"
import { lookAt } from "./regular-file.ts"

/**
 * Rejects a folder that cannot be written, or whose disk has too little space, before long work. For a missing folder
 * its nearest existing parent is checked. Leaves no file.
 *
 * @param bytes - approximate bytes that will be written.
 * @throws GigpoError `IO`
 */
export async function checkWritable(folder: string, bytes: number = 0): Promise<void> {
  const place = await nearestFolder(resolve(folder))
  // A probe also detects what permission bits do not show: root, read-only disks, quotas.
  const probe = join(place, ".gigpo-probe")
  await io("write into", place, removeEmpty(probe)) // that of a process that was killed between the next two steps
  const handle = await io("write into", place, open(probe, "wx").catch(ifOthers).catch(notHere(place)))
  await handle?.close()
  await io("remove", probe, removeEmpty(probe))
  await checkSpace(folder, bytes)
}

/**
 * Rejects a folder whose disk has too little space. Writes nothing.
 *
 * @param bytes - approximate bytes that will be written.
 * @throws GigpoError `IO`
 */
export async function checkSpace(folder: string, bytes: number): Promise<void> {
  const place = await nearestFolder(resolve(folder))
  const { bavail, bsize } = await io("look at", place, files.statfs(place))
  const free = bavail * bsize
  if (free < bytes)
    throw new GigpoError(
      "IO",
      `${folder} will need about ${formatBytes(bytes)}, but the disk has ${formatBytes(free)} left: free some space, or choose ` +
        "a folder on another disk.",
    )
}

/** Another process that checks the folder at the same time has shown that it can be written. */
function ifOthers(cause: unknown): undefined {
  if (!isSystemError(cause) || cause.code !== "EEXIST") throw cause
}

/** Removes a file without content; any other is not a probe. */
async function removeEmpty(path: string): Promise<void> {
  const found = await lookAt(path)
  if (found?.isFile() && found.size === 0) await rm(path, { force: true })
}

/** Translates "not found" for an existing folder: its file system, such as /proc, accepts no files. */
function notHere(place: string): (cause: unknown) => never {
  return (cause) => {
    if (!isSystemError(cause) || cause.code !== "ENOENT") throw cause
    throw new GigpoError("IO", `Cannot create files in ${place}, although the folder exists: choose another one.`, {
      cause,
    })
  }
}

/** The folder itself, or its nearest existing parent. */
export async function nearestFolder(path: string): Promise<string> {
  try {
    if ((await stat(path)).isDirectory()) return path
  } catch (cause) {
    if (isSystemError(cause) && cause.code === "ENOENT" && dirname(path) !== path)
      return await nearestFolder(dirname(path))
    if (!isSystemError(cause) || cause.code !== "ENOTDIR") throw ioError("look at", path, cause)
    return await nearestFolder(dirname(path))
  }
  throw new GigpoError("IO", `${path} is a file, not a folder: choose another name.`)
}
