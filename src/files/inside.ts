import { readdir, realpath } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { GigpoError } from "../util/errors.ts"
import { ioError, isMissing, isSystemError } from "./io-error.ts"
import { checkKind, lookAt } from "./regular-file.ts"

// A folder may come from anywhere, with links in it that lead out. The folder itself is trusted to be the one that was named, even
// where its path is a link; every name below it is looked at before it is used.

/**
 * Path of `name`, with slashes, in `folder`. Neither it nor a folder on the way to it may be a link; it need not exist.
 *
 * @throws GigpoError `UNSAFE_PATH` for a link, a pipe, a socket or a device; `IO`
 */
export async function inside(folder: string, name: string): Promise<string> {
  let path = folder
  try {
    for (const part of name === "." ? [] : name.split("/")) {
      if (part === ".." || part.includes("\0")) throw outside(folder, name)
      path = join(path, part)
      const found = await lookAt(path)
      if (found === undefined) break
      checkKind(path, found)
    }
  } catch (cause) {
    throw isSystemError(cause) ? ioError("look at", path, cause) : cause
  }
  return join(folder, name)
}

function outside(folder: string, name: string): GigpoError {
  return new GigpoError(
    "UNSAFE_PATH",
    `${JSON.stringify(name)} leads out of ${folder}: nothing is read or written there.`,
  )
}

/** The same path where a folder that was named above it may be a link: the last two names are looked at. */
export async function insideParent(path: string): Promise<string> {
  const parent = dirname(path)
  return await inside(dirname(parent), `${basename(parent)}/${basename(path)}`)
}

/**
 * Names in the folder `name` of `folder`; none where there is no such folder.
 *
 * @throws GigpoError as `inside`, also for an entry of these names
 */
export async function namesIn(folder: string, name = "."): Promise<string[]> {
  const path = await inside(folder, name)
  try {
    return await readdir(path)
  } catch (cause) {
    if (isMissing(cause)) return []
    throw ioError("read", path, cause)
  }
}

/**
 * Path that a file of a model folder is read from, the target of a link in the cache of the Hugging Face hub: there all files of
 * `models--<name>/snapshots/<revision>` are links into `models--<name>/blobs`. Undefined for any other file.
 */
export async function hubFile(folder: string, path: string): Promise<string | undefined> {
  try {
    const [file, snapshot] = await Promise.all([realpath(path), realpath(folder)])
    const repository = dirname(dirname(snapshot))
    const isCache = basename(dirname(snapshot)) === "snapshots" && /^models--/.test(basename(repository))
    return isCache && dirname(file) === join(repository, "blobs") ? file : undefined
  } catch (cause) {
    if (isSystemError(cause)) return undefined
    throw cause
  }
}

/** As `inside` for a file that is read from a model folder: links of the hub's cache lead to their targets. */
export async function insideModel(folder: string, name: string): Promise<string> {
  try {
    return await inside(folder, name)
  } catch (error) {
    const file = GigpoError.is(error) && error.code === "UNSAFE_PATH" && (await hubFile(folder, join(folder, name)))
    if (file) return file
    throw error
  }
}
