import type { Stats } from "node:fs"
import { stat } from "node:fs/promises"
import { dirname, resolve } from "node:path"
import { GigpoError } from "../util/errors.ts"
import { checkWritable } from "./check-space.ts"
import { ioError, isMissing } from "./io-error.ts"

/**
 * Refuses a file whose folder is not there, or cannot be written into.
 *
 * @param what - the file, for messages: "the report".
 * @throws GigpoError `BAD_ARGUMENT`, `IO`
 */
export async function checkFolderOf(path: string, what: string): Promise<void> {
  const folder = dirname(resolve(path))
  if (!(await kindOf(folder))?.isDirectory())
    throw new GigpoError("BAD_ARGUMENT", `There is no folder ${folder} for ${what}: make it first, or name another.`)
  await checkWritable(folder)
}

/** What lies at a path, where a link leads; undefined for nothing. */
export async function kindOf(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path)
  } catch (cause) {
    if (isMissing(cause)) return undefined
    throw ioError("look at", path, cause)
  }
}

/**
 * Refuses a place where `replaceFile` must not write, or could not, before anything is computed for it.
 *
 * @param overwrite - whether a file that is there may be replaced.
 * @throws GigpoError `FILE_EXISTS`, `BAD_ARGUMENT`, `IO`
 */
export async function checkNewFile(path: string, overwrite: boolean): Promise<void> {
  await checkFolderOf(path, path)
  const there = await kindOf(path)
  if (there?.isDirectory()) throw new GigpoError("FILE_EXISTS", `${path} is a folder; give the name of a file.`)
  if (!there || overwrite) return
  throw new GigpoError("FILE_EXISTS", `${path} is there already. Replace it (--overwrite), or choose another name.`)
}
