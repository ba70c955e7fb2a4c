import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { readdir, realpath, rm, rmdir, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import { basename, dirname, join } from "node:path"
import { GigpoError } from "../util/errors.ts"
import { inside, namesIn } from "./inside.ts"
import { io, isSystemError } from "./io-error.ts"
import { isRunning, processNamespace } from "./process-id.ts"
import { readIfThere } from "./regular-file.ts"
import { stateKey } from "./state-folder.ts"

// Unfinished work of a killed process is completed or removed by the next one. A folder from elsewhere could request the
// same, so unfinished work carries a seal: an HMAC of its path, with a key that no model or run folder contains.
// Temporary files and folders have the seal in their name, a folder that waits for being moved has it in a file.

const sealFile = ".gigpo-seal"
const suffix = /([0-9a-f]{8})([0-9a-f]{16})$/

async function mac(make: boolean, ...parts: readonly string[]): Promise<string | undefined> {
  const key = await stateKey("journal", make)
  return key && createHmac("sha256", key).update(JSON.stringify(parts)).digest("hex")
}

/** Path with the links of its folder resolved. */
async function placeOf(path: string): Promise<string> {
  return join(await realpath(dirname(path)), basename(path))
}

/** `stem` with 24 hexadecimal digits that identify the path as this user's own. */
export async function sealedName(stem: string): Promise<string> {
  const nonce = randomBytes(4).toString("hex")
  return `${stem}${nonce}${(await mac(true, "name", await placeOf(stem), nonce))!.slice(0, 16)}`
}

/**
 * New path of a temporary file or folder that will be renamed to `path`. Those that killed processes left for this path are removed first,
 * since this may be the last write to `path`.
 */
export async function temporaryOf(path: string): Promise<string> {
  await removeLeftovers(path)
  return await sealedName(`${path}.tmp-${writer()}`)
}

const temporary = /\.tmp-([0-9a-f]{8})([0-9a-f]{8})[0-9a-f]{24}$/

/** 16 hexadecimal digits that identify this process: its machine and container, and its id. */
function writer(): string {
  return `${machine()}${process.pid.toString(16).padStart(8, "0")}`
}

let known: string | undefined

function machine(): string {
  known ??= createHash("sha256")
    .update(JSON.stringify([hostname(), processNamespace()]))
    .digest("hex")
    .slice(0, 8)
  return known
}

async function removeLeftovers(path: string): Promise<void> {
  const folder = dirname(path)
  const names = await readdir(folder).catch((cause) => {
    // Files may be written into a folder that may not be read. If there is none, the write itself fails.
    if (isSystemError(cause) && ["EACCES", "EPERM", "ENOENT", "ENOTDIR"].includes(cause.code)) return []
    throw cause
  })
  for (const name of names) {
    if (!name.startsWith(`${basename(path)}.tmp-`)) continue
    const [digits, where, pid] = temporary.exec(name) ?? []
    if (digits?.length !== name.length - basename(path).length || where !== machine()) continue
    const left = join(folder, name)
    if (!isRunning(Number.parseInt(pid!, 16)) && (await isSealedName(left)))
      await rm(left, { recursive: true, force: true })
  }
}

/** Whether `sealedName` made this path, for this user in this folder. */
export async function isSealedName(path: string): Promise<boolean> {
  const [digits, nonce = "", found = ""] = suffix.exec(basename(path)) ?? []
  if (digits === undefined) return false
  const expected = await mac(false, "name", await placeOf(path.slice(0, -digits.length)), nonce)
  return isSame(expected?.slice(0, 16), found)
}

/** Seals a folder that will wait in `owner` for being moved, together with `text`. */
export async function seal(folder: string, owner: string, text: string): Promise<void> {
  const digits = await mac(true, "folder", await realpath(owner), text)
  await writeFile(join(folder, sealFile), `${digits}\n`, { flag: "wx" })
}

/**
 * Rejects a waiting folder in `owner` that this user did not seal on this machine.
 *
 * @throws GigpoError `UNFINISHED_WRITE`
 */
export async function checkSealed(folder: string, owner: string, text: string): Promise<void> {
  const found = (await readIfThere(await inside(folder, sealFile)))?.trim() ?? ""
  if (isSame(await mac(false, "folder", await realpath(owner), text), found)) return
  throw new GigpoError(
    "UNFINISHED_WRITE",
    `${folder} contains an interrupted write that was not signed by this user on this machine: nothing was ` +
      `changed. If you trust the author of ${owner}, finish the write with "gigpo recover ${owner}"; otherwise remove ${folder} and ` +
      "its content. In a container, set GIGPO_STATE to a persistent folder.",
  )
}

/** Names in a sealed folder, except the seal. */
export async function sealedNames(folder: string): Promise<string[]> {
  return (await namesIn(folder)).filter((name) => name !== sealFile)
}

/** Whether a path within a sealed folder is the seal. */
export function isSealFile(name: string): boolean {
  return name === sealFile
}

/** Removes a sealed folder, with the seal last, so that an interrupted removal can be finished. */
export async function removeSealed(folder: string): Promise<void> {
  const remove = (path: string) => io("remove", path, rm(path, { recursive: true, force: true }))
  for (const name of await sealedNames(folder)) await remove(join(folder, name))
  await remove(join(folder, sealFile))
  await io("remove", folder, rmdir(folder).catch(ifThere))
}

/** Removes temporary files and folders that killed processes of this user left, among `names` of a folder. */
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
