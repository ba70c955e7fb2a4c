import { stat } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { hubFile, inside, namesIn } from "./inside.ts"
import { io, isMissing } from "./io-error.ts"
import { folderManifest, readWritten } from "./manifest.ts"
import { linkError, lookAt, specialError } from "./regular-file.ts"

/** Whether gigpo manages a folder: it has a manifest or is part of a run. */
async function isManaged(folder: string, names: readonly string[]): Promise<boolean> {
  if (names.includes(folderManifest) || (await readWritten(folder)) !== undefined) return true
  const above = basename(dirname(folder)) === "checkpoints" ? dirname(dirname(folder)) : dirname(folder)
  return (await io("look at", above, lookAt(join(above, "metrics.jsonl")))) !== undefined
}

/**
 * Rejects links in a model folder that gigpo manages. Other folders may have links to regular files, as the cache of
 * the Hugging Face hub does, but no other links and no pipes, sockets or devices.
 *
 * @param isRead - whether gigpo reads a name of the folder; others are not checked.
 * @throws GigpoError `UNSAFE_PATH`, `IO`
 */
export async function checkModelLinks(folder: string, isRead: (name: string) => boolean): Promise<void> {
  const names = await namesIn(folder)
  const managed = await isManaged(folder, names)
  for (const name of names.filter(isRead)) await checkEntry(folder, name, managed)
}

async function checkEntry(folder: string, name: string, managed: boolean): Promise<void> {
  const path = join(folder, name)
  const found = await io("look at", path, lookAt(path))
  if (found?.isDirectory()) {
    for (const inner of await namesIn(folder, name)) await checkEntry(folder, `${name}/${inner}`, managed)
    return
  }
  if (!found?.isSymbolicLink()) return void (await inside(folder, name))
  if (managed && (await hubFile(folder, path)) === undefined) throw linkError(path)
  const target = await io("look at", path, stat(path).catch(nothing))
  if (target && !target.isFile()) throw target.isDirectory() ? linkError(path) : specialError(path)
}

/** A broken link is a missing file, which is reported where the file is read. */
function nothing(cause: unknown): undefined {
  if (!isMissing(cause)) throw cause
}
