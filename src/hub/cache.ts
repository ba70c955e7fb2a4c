import { copyFile, link, mkdir, readdir, readlink, realpath, rename, rm, stat, symlink } from "node:fs/promises"
import { dirname, join, relative, resolve } from "node:path"
import { replaceFile } from "../files/atomic-file.ts"
import { io, ioError, isMissing, isSystemError } from "../files/io-error.ts"
import { linkError, lookAt, readIfThere } from "../files/regular-file.ts"
import type { HubFile } from "./listing.ts"
import { folderOf, isCommit } from "./names.ts"

// Layout of the cache as in Python's huggingface_hub, so that both share downloaded files:
//   models--owner--name/blobs/<digest>                  contents
//   models--owner--name/snapshots/<commit>/config.json  links into blobs
//   models--owner--name/refs/main                       commit that a branch or tag pointed to
//   .locks/models--owner--name/<digest>.lock

/** Folders of one repository in the cache. */
export interface Place {
  readonly blobs: string
  readonly snapshots: string
  readonly refs: string
  readonly locks: string
}

export function placeOf(cache: string, repository: string): Place {
  const folder = join(cache, folderOf(repository))
  return {
    blobs: join(folder, "blobs"),
    snapshots: join(folder, "snapshots"),
    refs: join(folder, "refs"),
    locks: join(cache, ".locks", folderOf(repository)),
  }
}

/** Returns the commit that a branch or tag pointed to at the last request; undefined if unknown. */
export async function readRef({ refs }: Place, revision: string): Promise<string | undefined> {
  const text = (await readIfThere(join(refs, ...revision.split("/")), 1000))?.trim()
  return isCommit(text) ? text : undefined
}

export async function writeRef(place: Place, revision: string, commit: string): Promise<void> {
  if (revision === commit || (await readRef(place, revision)) === commit) return
  const path = join(place.refs, ...revision.split("/"))
  await io("create", dirname(path), mkdir(dirname(path), { recursive: true }))
  await replaceFile(path, commit)
}

/**
 * Creates the folders that files are written into.
 *
 * @throws GigpoError `UNSAFE_PATH` for a folder that is a symbolic link, which could lead out of the cache
 */
export async function makeFolders({ blobs, snapshots, locks }: Place, commit: string): Promise<void> {
  for (const folder of [blobs, snapshots, join(snapshots, commit), locks]) await makeFolder(folder)
}

async function makeFolder(folder: string): Promise<void> {
  await io("create", folder, mkdir(folder, { recursive: true }))
  if ((await io("look at", folder, lookAt(folder)))?.isSymbolicLink()) throw linkError(folder)
}

/** Whether a blob exists with its full size. Digests are checked only when a blob is written. */
export async function hasBlob({ blobs }: Place, { blob, size }: HubFile): Promise<boolean> {
  return (await sizeOf(join(blobs, blob))) === size
}

/** Whether a snapshot has a file with the expected content: a link to the expected blob, or a regular file of the same size. */
export async function isPlaced(place: Place, commit: string, file: HubFile): Promise<boolean> {
  const path = join(place.snapshots, commit, ...file.path.split("/"))
  const found = await io("look at", path, lookAt(path))
  if (!found?.isSymbolicLink()) return found?.isFile() === true && found.size === file.size
  return (await targetOf(path)) === join(place.blobs, file.blob) && (await hasBlob(place, file))
}

/**
 * Puts a blob into a snapshot as a relative symbolic link, or as a hard link or copy where the system allows no symbolic links.
 *
 * @throws GigpoError `UNSAFE_PATH` for an existing link that leads out of the repository's blobs
 */
export async function placeBlob(place: Place, commit: string, { path: name, blob }: HubFile): Promise<void> {
  const path = join(place.snapshots, commit, ...name.split("/"))
  const target = join(place.blobs, blob)
  if (dirname(path) !== join(place.snapshots, commit)) await makeFolder(dirname(path))
  const found = await io("look at", path, lookAt(path))
  if (found?.isSymbolicLink() && dirname(await targetOf(path)) !== place.blobs) throw linkError(path)
  // The same name each time, under the lock of the blob: what a killed process left is replaced.
  const temporary = `${path}.gigpo.incomplete`
  try {
    await rm(temporary, { force: true })
    await symlink(relative(dirname(path), target), temporary).catch(async (cause) => {
      if (!isSystemError(cause) || !["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP"].includes(cause.code)) throw cause
      await link(target, temporary).catch(() => copyFile(target, temporary))
    })
    await rename(temporary, path)
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => {})
    throw ioError("write", path, cause)
  }
}

/** Returns the target of a link. Further links are not followed: blobs may be links into the store that repositories share. */
async function targetOf(path: string): Promise<string> {
  return resolve(dirname(path), await io("read", path, readlink(path)))
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    const found = await stat(path)
    return found.isFile() ? found.size : undefined
  } catch (cause) {
    if (isMissing(cause)) return undefined
    throw ioError("look at", path, cause)
  }
}

/**
 * Returns the files of a snapshot whose contents exist: paths with slashes, and sizes in bytes. Links to anything but the repository's
 * blobs, or the store that repositories share (`blobs` in the cache), are left out.
 */
export async function filesOf(
  place: Place,
  commit: string,
): Promise<{ readonly path: string; readonly size: number }[]> {
  const root = join(place.snapshots, commit)
  const allowed = await Promise.all([place.blobs, join(dirname(dirname(place.blobs)), "blobs")].map(realOf))
  const walk = async (folder: string, prefix: string, depth: number): Promise<{ path: string; size: number }[]> => {
    const entries = await readdir(folder, { withFileTypes: true }).catch((cause) => {
      if (isMissing(cause)) return []
      throw ioError("read", folder, cause)
    })
    const found = entries.map(async (entry) => {
      const [path, name] = [join(folder, entry.name), `${prefix}${entry.name}`]
      if (entry.isDirectory()) return depth > 0 ? await walk(path, `${name}/`, depth - 1) : []
      const size = await sizeOf(path)
      if (size === undefined) return []
      const isInside = !entry.isSymbolicLink() || isIn(await realOf(path), allowed)
      return isInside ? [{ path: name, size }] : []
    })
    return (await Promise.all(found)).flat()
  }
  return await walk(root, "", 4)
}

function isIn(path: string, [blobs, shared]: readonly string[]): boolean {
  return dirname(path) === blobs || dirname(dirname(path)) === shared
}

async function realOf(path: string): Promise<string> {
  return await realpath(path).catch(() => path)
}
