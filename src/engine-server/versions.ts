import { createHash } from "node:crypto"
import { mkdir, readdir, rm, rmdir, stat } from "node:fs/promises"
import { hostname } from "node:os"
import { basename, join } from "node:path"
import { writeDirectory } from "../files/atomic-directory.ts"
import { replaceFile } from "../files/atomic-file.ts"
import { flush } from "../files/flush.ts"
import { inside } from "../files/inside.ts"
import { io, isMissing } from "../files/io-error.ts"
import { isRunning } from "../files/lock.ts"
import { readRegular } from "../files/regular-file.ts"
import { isSealedName, sealedName } from "../files/seal.ts"

// A folder whose content is replaced at once: about.json names the version that counts, which is a folder next to it. A version is never
// changed after it was written, so a crash leaves the earlier version or the new one, and perhaps a folder that no about.json names.

/** Name of the file that names the version. */
export const aboutFile = "about.json"

export interface Version<About> {
  readonly about: About
  readonly directory: string
}

const host = createHash("sha256").update(hostname()).digest("hex").slice(0, 8)
/** Name of the version where about.json gives none, as in folders of earlier releases. */
const firstVersion = "model"
const versionPattern = /^model-([0-9a-f]{8})-(\d+)-[0-9a-f]{12,24}(\.tmp-[0-9a-f]{24})?$/
const unfinishedAbout = /^about\.json\.tmp-[0-9a-f]{24}$/
/** Milliseconds after which a version that another machine was writing counts as abandoned. */
const abandoned = 24 * 3600 * 1000

/** A new name for a version that this process writes into `folder`, which is made. */
export async function newVersion(folder: string): Promise<string> {
  await io("create", folder, mkdir(folder, { recursive: true }))
  return basename(await io("create", folder, sealedName(join(folder, `model-${host}-${process.pid}-`))))
}

/**
 * Writes a version that does not count yet.
 *
 * @param fill - writes into an empty folder and returns what about.json is to say.
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

/** Makes a version the one that counts. */
export async function publishVersion(folder: string, version: string, about: object): Promise<void> {
  await replaceFile(join(folder, aboutFile), JSON.stringify({ ...about, version }))
}

/** The version that counts; undefined where none does. */
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

/** From now on no version counts. Their files are left to `removeOthers`. */
export async function withdrawVersion(folder: string): Promise<void> {
  await io("remove", folder, rm(join(folder, aboutFile), { force: true }))
  await io("flush", folder, flush(folder))
}

/**
 * Removes versions that do not count and are not used, and the folder itself where nothing is left. Files of other names stay.
 *
 * @param own - removes only what this user's journal on this machine knows: what a crash left.
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
  if (!current) await rmdir(folder).catch(() => {}) // something may be there again
}

/** Whether another process, which may still be running, is writing a version in a folder. */
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

export function ifMissing<T>(value: T): (cause: unknown) => T {
  return (cause) => {
    if (isMissing(cause)) return value
    throw cause
  }
}
