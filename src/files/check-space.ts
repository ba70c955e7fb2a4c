import { randomBytes } from "node:crypto"
import files, { open, rm, stat } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { GigpoError } from "../util/errors.ts"
import { formatBytes } from "./format-bytes.ts"
import { io, ioError, isSystemError } from "./io-error.ts"

/**
 * Refuses a folder that could not be written, or whose disk has too little room, before long work is done for it. The folder need
 * not be there: then the one that it would be made in is asked. Leaves nothing behind.
 *
 * @param bytes - what is going to be written, about.
 * @throws GigpoError `IO`
 */
export async function checkWritable(folder: string, bytes: number = 0): Promise<void> {
  const place = await nearestFolder(resolve(folder))
  // What a probe tells no look at permissions does: of root, of read-only disks, of quotas.
  const probe = join(place, `.gigpo-probe-${randomBytes(6).toString("hex")}`)
  const handle = await io("write into", place, open(probe, "wx").catch(notHere(place)))
  await handle.close()
  await io("remove", probe, rm(probe))
  const { bavail, bsize } = await io("look at", place, files.statfs(place))
  const free = bavail * bsize
  if (free < bytes)
    throw new GigpoError(
      "IO",
      `${folder} is going to take about ${formatBytes(bytes)}, but the disk has ${formatBytes(free)} left: free some space, or choose ` +
        "a folder on another disk.",
    )
}

/** The folder is there, so that "not found" says that its file system takes no files: /proc. */
function notHere(place: string): (cause: unknown) => never {
  return (cause) => {
    if (!isSystemError(cause) || cause.code !== "ENOENT") throw cause
    throw new GigpoError("IO", `No file can be made in ${place}, though the folder is there: choose another one.`, {
      cause,
    })
  }
}

/** The folder itself, or the nearest of those above it that is there. */
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
