import { readdir, realpath } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { GigpoError } from "../util/errors.ts"
import { ioError, isMissing, isSystemError } from "./io-error.ts"
import { checkKind, lookAt } from "./regular-file.ts"

// A folder may come from anywhere and contain links that lead out of it. The folder itself is trusted, even if its path
// is a link; every name below it is checked before use.

/**
 * Path of `name`, with slashes, in `folder`. Neither the path nor a folder on the way may be a link; it need not exist.
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
    `${JSON.stringify(name)} leads out of ${folder}; it is neither read nor written.`,
  )
}

/** Like `inside`, for a path whose grandparent folder may be a link: the last two names are checked. */
export async function insideParent(path: string): Promise<string> {
  const parent = dirname(path)
  return await inside(dirname(parent), `${basename(parent)}/${basename(path)}`)
}

/**
 * Names in the folder `name` of `folder`; empty if there is no such folder.
 *
 * @throws GigpoError as `inside`, also for entries
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
 * Target of a file of a model folder in the cache of the Hugging Face hub, where the files of
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

/** Like `inside`, for reading from a model folder: links of the hub's cache are followed. */
export async function insideModel(folder: string, name: string): Promise<string> {
  try {
    return await inside(folder, name)
  } catch (error) {
    const file = GigpoError.is(error) && error.code === "UNSAFE_PATH" && (await hubFile(folder, join(folder, name)))
    if (file) return file
    throw error
  }
}
