import type { Stats } from "node:fs"
import { stat } from "node:fs/promises"
import { dirname, resolve } from "node:path"
import { GigpoError } from "../util/errors.ts"
import { checkWritable } from "./check-space.ts"
import { ioError, isMissing } from "./io-error.ts"

/**
 * Rejects a file whose folder does not exist or is not writable.
 *
 * @param what - the file, for messages: "the report".
 * @throws GigpoError `BAD_ARGUMENT`, `IO`
 */
export async function checkFolderOf(path: string, what: string): Promise<void> {
  const folder = dirname(resolve(path))
  if (!(await kindOf(folder))?.isDirectory())
    throw new GigpoError("BAD_ARGUMENT", `There is no folder ${folder} for ${what}: create it, or choose another.`)
  await checkWritable(folder)
}

/** Kind of a path, with links resolved; undefined if nothing exists there. */
export async function kindOf(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path)
  } catch (cause) {
    if (isMissing(cause)) return undefined
    throw ioError("look at", path, cause)
  }
}

/**
 * Rejects a path that `replaceFile` must not or cannot write, before anything is computed.
 *
 * @param overwrite - whether an existing file may be replaced.
 * @throws GigpoError `FILE_EXISTS`, `BAD_ARGUMENT`, `IO`
 */
export async function checkNewFile(path: string, overwrite: boolean): Promise<void> {
  await checkFolderOf(path, path)
  const there = await kindOf(path)
  if (there?.isDirectory()) throw new GigpoError("FILE_EXISTS", `${path} is a folder; give the path of a file.`)
  if (!there || overwrite) return
  throw new GigpoError("FILE_EXISTS", `${path} already exists. Replace it (--overwrite), or choose another name.`)
}
