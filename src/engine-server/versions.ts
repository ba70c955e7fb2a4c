import { createHash } from "node:crypto"
import { mkdir, readdir, rm, rmdir, stat } from "node:fs/promises"
import { hostname } from "node:os"
import { basename, join } from "node:path"
import { writeDirectory } from "../files/atomic-directory.ts"
import { replaceFile } from "../files/atomic-file.ts"
import { flush } from "../files/flush.ts"
import { inside } from "../files/inside.ts"
import { io, isMissing } from "../files/io-error.ts"
import { isRunning } from "../files/process-id.ts"
import { readRegular } from "../files/regular-file.ts"
import { isSealedName, sealedName } from "../files/seal.ts"

// Atomic replacement of a folder's contents: about.json names the current version, which is a folder next to it. Versions are never
// changed after they are written. A crash therefore leaves the earlier or the new version, and perhaps an unused folder.

/** Name of the file that names the current version. */
export const aboutFile = "about.json"

/** Current version of a folder. */
export interface Version<About> {
  readonly about: About
  readonly directory: string
}

const host = createHash("sha256").update(hostname()).digest("hex").slice(0, 8)
/** Name of the version if about.json names none, as in folders of earlier releases. */
const firstVersion = "model"
const versionPattern = /^model-([0-9a-f]{8})-(\d+)-[0-9a-f]{12,24}(\.tmp-[0-9a-f]{24,40})?$/
const unfinishedAbout = /^about\.json\.tmp-[0-9a-f]{24,40}$/
/** Milliseconds after which an unfinished version of another machine counts as abandoned. */
const abandoned = 24 * 3600 * 1000

/** Returns a new name for a version in `folder`, which is created if missing. */
export async function newVersion(folder: string): Promise<string> {
  await io("create", folder, mkdir(folder, { recursive: true }))
  return basename(await io("create", folder, sealedName(join(folder, `model-${host}-${process.pid}-`))))
}

/**
 * Writes a version without making it the current one.
 *
 * @param fill - writes into an empty folder and returns the contents of about.json.
 */
export async function writeVersion<About>(
  folder: string,
  version: string,
  fill: (directory: string) => Promise<About>,
): Promise<About> {
  let about: About | undefined
  await writeDirectory(join(folder, version), async (temporary) => {
    about = await fill(temporary)
  })
  return about!
}

/** Makes a version the current one. */
export async function publishVersion(folder: string, version: string, about: object): Promise<void> {
  await replaceFile(join(folder, aboutFile), JSON.stringify({ ...about, version }))
}

/** Returns the current version; undefined where there is none. */
export async function readVersion<About>(folder: string): Promise<Version<About> | undefined> {
  const file = join(folder, aboutFile)
  try {
    const { version = firstVersion, ...about } = JSON.parse(await readRegular(file)) as About & {
      version?: string
    }
    if (version !== firstVersion && !versionPattern.test(version)) return undefined
    return { about: about as About, directory: await inside(folder, version) }
  } catch (cause) {
    if (isMissing(cause) || cause instanceof SyntaxError) return undefined
    return await io("read", file, Promise.reject(cause))
  }
}

/** Makes no version the current one. The files are removed by `removeOthers`. */
export async function withdrawVersion(folder: string): Promise<void> {
  await io("remove", folder, rm(join(folder, aboutFile), { force: true }))
  await io("flush", folder, flush(folder))
}

/**
 * Removes versions that are neither current nor in use, and the folder itself if nothing is left. Other files are kept.
 *
 * @param own - whether to remove only files in this user's journal on this machine, which a crash left.
 */
export async function removeOthers(folder: string, isUsed: (name: string) => boolean, own = false): Promise<void> {
  const current = await readVersion(folder)
  const names = await readdir(folder).catch(ifMissing([]))
  for (const name of names) {
    const path = join(folder, name)
    if (path === current?.directory || (current && name === aboutFile) || isUsed(name)) continue
    const isVersion = name === firstVersion || versionPattern.test(name) || unfinishedAbout.test(name)
    if (!isVersion || (own && !(await isSealedName(path)))) continue
    await io("remove", path, rm(path, { recursive: true, force: true }))
  }
  if (!current) await rmdir(folder).catch(() => {}) // fails if the folder is in use again
}

/** Whether another process may be writing a version in a folder. */
export async function isBeingWritten(folder: string): Promise<boolean> {
  for (const name of await readdir(folder).catch(ifMissing<string[]>([]))) {
    const [, machine, pid] = versionPattern.exec(name) ?? []
    if (pid === undefined) continue
    if (machine === host) {
      if (Number(pid) !== process.pid && isRunning(Number(pid))) return true
      continue
    }
    const { mtimeMs } = await stat(join(folder, name)).catch(ifMissing({ mtimeMs: 0 }))
    if (Date.now() - mtimeMs < abandoned) return true
  }
  return false
}

/** Returns an error handler that gives `value` for a missing file, and rethrows other errors. */
export function ifMissing<T>(value: T): (cause: unknown) => T {
  return (cause) => {
    if (isMissing(cause)) return value
    throw cause
  }
}
