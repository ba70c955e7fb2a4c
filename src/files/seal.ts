import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { realpath, rm, rmdir, writeFile } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { GigpoError } from "../util/errors.ts"
import { inside, namesIn } from "./inside.ts"
import { io, isSystemError } from "./io-error.ts"
import { readIfThere } from "./regular-file.ts"
import { journalKey } from "./state-folder.ts"

// What a killed process left half done is finished or removed by the next. A folder from elsewhere could ask for the same, so
// unfinished work carries a seal: an HMAC of its place, with a key that no model or run folder holds. A temporary file or folder has it
// in its name, a folder that waits to be moved to its place has it in a file.

const sealFile = ".gigpo-seal"
const suffix = /([0-9a-f]{8})([0-9a-f]{16})$/

async function mac(make: boolean, ...parts: readonly string[]): Promise<string | undefined> {
  const key = await journalKey(make)
  return key && createHmac("sha256", key).update(JSON.stringify(parts)).digest("hex")
}

/** Where a path lies, whatever links lead to its folder. */
async function placeOf(path: string): Promise<string> {
  return join(await realpath(dirname(path)), basename(path))
}

/** `stem` with 24 hexadecimal digits, by which it is known later as this user's own. */
export async function sealedName(stem: string): Promise<string> {
  const nonce = randomBytes(4).toString("hex")
  return `${stem}${nonce}${(await mac(true, "name", await placeOf(stem), nonce))!.slice(0, 16)}`
}

/** A new path for what is renamed to `path` once it is whole. */
export async function temporaryOf(path: string): Promise<string> {
  return await sealedName(`${path}.tmp-`)
}

/** Whether `sealedName` made this path, for this user and at this place. */
export async function isSealedName(path: string): Promise<boolean> {
  const [digits, nonce = "", found = ""] = suffix.exec(basename(path)) ?? []
  if (digits === undefined) return false
  const expected = await mac(false, "name", await placeOf(path.slice(0, -digits.length)), nonce)
  return isSame(expected?.slice(0, 16), found)
}

/** Seals the folder, which is going to wait in `owner` for being moved; `text` is sealed with it. */
export async function seal(folder: string, owner: string, text: string): Promise<void> {
  const digits = await mac(true, "folder", await realpath(owner), text)
  await writeFile(join(folder, sealFile), `${digits}\n`, { flag: "wx" })
}

/**
 * Refuses a folder in `owner` that waits for being moved and was not sealed by this user on this machine.
 *
 * @throws GigpoError `UNFINISHED_WRITE`
 */
export async function checkSealed(folder: string, owner: string, text: string): Promise<void> {
  const found = (await readIfThere(await inside(folder, sealFile)))?.trim() ?? ""
  if (isSame(await mac(false, "folder", await realpath(owner), text), found)) return
  throw new GigpoError(
    "UNFINISHED_WRITE",
    `${folder} holds what an interrupted write left, and the journal of this user on this machine does not know it: nothing was ` +
      `changed. Where you trust who made ${owner}, finish that write with "gigpo recover ${owner}"; otherwise remove ${folder} with ` +
      "what it holds. In a container, set GIGPO_STATE to a folder that outlives it.",
  )
}

/** Names in a sealed folder, the seal aside. */
export async function sealedNames(folder: string): Promise<string[]> {
  return (await namesIn(folder)).filter((name) => name !== sealFile)
}

/** Whether a path within a sealed folder is the seal's. */
export function isSealFile(name: string): boolean {
  return name === sealFile
}

/** Removes a sealed folder, the seal last: a removal that was interrupted can be finished. */
export async function removeSealed(folder: string): Promise<void> {
  const remove = (path: string) => io("remove", path, rm(path, { recursive: true, force: true }))
  for (const name of await sealedNames(folder)) await remove(join(folder, name))
  await remove(join(folder, sealFile))
  await io("remove", folder, rmdir(folder).catch(ifThere))
}

/** Removes the temporary files and folders that killed processes of this user left among `names` of a folder. */
export async function removeTemporaries(folder: string, names: readonly string[]): Promise<void> {
  for (const path of names.map((name) => join(folder, name)))
    if (await isSealedName(path)) await io("remove", path, rm(path, { recursive: true, force: true }))
}

function ifThere(cause: unknown): void {
  if (!(isSystemError(cause) && cause.code === "ENOENT")) throw cause
}

function isSame(expected: string | undefined, found: string): boolean {
  return expected?.length === found.length && timingSafeEqual(Buffer.from(expected), Buffer.from(found))
}
