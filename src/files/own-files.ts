import { lstat, mkdir, readdir, rename, rm, rmdir } from "node:fs/promises"
import { dirname, join } from "node:path"
import { GigpoError } from "../util/errors.ts"
import { compared } from "./compared.ts"
import { inside } from "./inside.ts"
import { io, ioError, isMissing, isSystemError } from "./io-error.ts"
import { compareFile, readWritten } from "./manifest.ts"

/**
 * Rejects to overwrite files that this package did not write, or that were changed since.
 *
 * @throws GigpoError `FILE_EXISTS`; nothing has been changed then.
 */
export async function refuseForeign(folder: string, names: readonly string[]): Promise<void> {
  const written = await readWritten(folder)
  const own = new Map(written?.files.map((file) => [file.name, file]))
  for (const name of names) {
    if (name === written?.manifest) continue
    const file = own.get(name)
    const place = await inside(folder, name)
    const foreign = file ? (await compareFile(folder, file)) === "other" : await isTaken(place)
    if (foreign) throw inTheWay(join(folder, name), file ? "changed" : written ? "foreign" : "unknown")
  }
}

/** Also true if a file is in the place of a parent folder. */
async function isTaken(path: string): Promise<boolean> {
  try {
    return Boolean(await lstat(path))
  } catch (cause) {
    if (isSystemError(cause) && cause.code === "ENOENT") return false
    if (isMissing(cause)) return true
    throw ioError("look at", path, cause)
  }
}

const reasons = {
  changed: "was changed since gigpo wrote it",
  foreign: "was not written by gigpo",
  unknown: "was not written by gigpo as far as is known (there is no gigpo.json)",
}

function inTheWay(path: string, why: keyof typeof reasons): GigpoError {
  return new GigpoError(
    "FILE_EXISTS",
    `${path} ${reasons[why]}, so it is not replaced. Move it, or choose another folder.`,
  )
}

/**
 * Removes what this package wrote into a folder, and the folder if it is empty afterwards. Changed files stay; the
 * manifest is removed.
 *
 * @throws GigpoError `UNSAFE_PATH` if a name leads through a link; nothing has been removed then.
 */
export async function removeOwn(folder: string): Promise<void> {
  const written = await readWritten(folder)
  if (!written) return await removeEmptyFolders(folder, [])
  const names: string[] = []
  for (const file of written.files) {
    await inside(folder, file.name)
    if ((await io("read", folder, compared(folder, file))) === "same") names.push(file.name)
  }
  for (const name of [...names, written.manifest]) {
    const place = await inside(folder, name)
    await io("remove", place, rm(place, { force: true }))
  }
  await removeEmptyFolders(
    folder,
    written.files.map(({ name }) => name),
  )
}

/** Moves the files that this package wrote to the same places in another folder. */
export async function moveOwn(folder: string, to: string): Promise<void> {
  const names = await ownNames(folder)
  await moveFiles(folder, to, names)
  await removeEmptyFolders(folder, names)
}

/** Names of the files, with the manifest last, so that an interrupted move can be finished. */
async function ownNames(folder: string): Promise<readonly string[]> {
  const written = await readWritten(folder)
  return written ? [...written.files.map(({ name }) => name), written.manifest] : []
}

/** Moves files to the same places in another folder on the same disk; missing files are skipped. */
export async function moveFiles(folder: string, to: string, names: readonly string[]): Promise<void> {
  // Check all paths before the first file is moved.
  for (const name of names) for (const one of [folder, to]) await inside(one, name)
  for (const name of names) {
    const [from, place] = [await inside(folder, name), await inside(to, name)]
    await io("create", dirname(place), mkdir(dirname(place), { recursive: true }))
    try {
      await rename(from, place)
    } catch (cause) {
      if (!isMissing(cause)) throw ioError("move", from, cause)
    }
  }
}

/** Removes the folders of these files if they are empty. */
export async function removeEmptyFolders(folder: string, names: readonly string[]): Promise<void> {
  const folders = new Set<string>(["."])
  for (const name of names) for (let up = dirname(name); up !== "."; up = dirname(up)) folders.add(up)
  const deepestFirst = [...folders].sort((a, b) => b.split("/").length - a.split("/").length || (a === "." ? 1 : -1))
  for (const one of deepestFirst) {
    const path = await inside(folder, one)
    try {
      if ((await readdir(path)).length === 0) await rmdir(path)
    } catch (cause) {
      if (!isMissing(cause)) throw ioError("remove", path, cause)
    }
  }
}
