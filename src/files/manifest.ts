import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { lstat, readdir, readFile, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { version } from "../version.ts"
import { io, isMissing } from "./io-error.ts"

// What this package writes into a folder, the folder says itself: that alone is ever replaced or removed.

/** A file as it was written. */
export interface WrittenFile {
  /** Within the folder, with slashes. */
  readonly name: string
  readonly bytes: number
  readonly sha256: string
}

/** The file that tells of the others. Folders of checkpoints have one of another name, which says more. */
export const folderManifest = "gigpo.json"
export const checkpointManifest = "manifest.json"

/** What a folder's manifest says of its files, the manifest aside. */
export interface Written {
  readonly manifest: string
  readonly files: readonly WrittenFile[]
  /** By what a model was made: "initialize", "clone" or "train". */
  readonly made?: unknown
}

/** What this package wrote into a folder; undefined where no manifest tells. */
export async function readWritten(folder: string): Promise<Written | undefined> {
  for (const manifest of [folderManifest, checkpointManifest]) {
    const text = await readFile(join(folder, manifest), "utf8").catch(() => "null")
    const written = parse(text)
    if (written) return { manifest, ...written }
  }
  return undefined
}

/** One that names what lies elsewhere is none of ours. */
function parse(text: string): Omit<Written, "manifest"> | undefined {
  try {
    const { gigpo, version, files, made } = JSON.parse(text)
    const isFile = ({ name, bytes, sha256 }: WrittenFile) =>
      typeof name === "string" &&
      name.split("/").every((part) => !["", ".", ".."].includes(part)) &&
      typeof bytes === "number" &&
      typeof sha256 === "string"
    const isOurs = typeof gigpo === "string" || version === 1 // of checkpoints of gigpo 0.1
    return isOurs && Array.isArray(files) && files.every(isFile) ? { files, made } : undefined
  } catch {
    return undefined
  }
}

/** Writes the manifest of all files that are in a folder. */
export async function writeManifest(folder: string, name: string, about: object): Promise<void> {
  const files: WrittenFile[] = []
  for (const file of await listFiles(folder)) {
    const path = join(folder, file)
    files.push({ name: file, bytes: (await stat(path)).size, sha256: await hashFile(path) })
  }
  await writeFile(join(folder, name), `${JSON.stringify({ gigpo: version, ...about, files }, null, 2)}\n`)
}

/** Names of all files below a folder, with slashes and sorted. */
export async function listFiles(folder: string, prefix = ""): Promise<string[]> {
  const names: string[] = []
  for (const entry of await io("read", folder, readdir(folder, { withFileTypes: true }))) {
    const name = `${prefix}${entry.name}`
    if (entry.isDirectory()) names.push(...(await listFiles(join(folder, entry.name), `${name}/`)))
    else names.push(name)
  }
  return names.sort()
}

/** Whether a file still is what was written: "missing", "same" or "other". */
export async function compareFile(folder: string, file: WrittenFile): Promise<"missing" | "same" | "other"> {
  const path = join(folder, file.name)
  try {
    const found = await lstat(path)
    if (!found.isFile() || found.size !== file.bytes) return "other"
    return (await hashFile(path)) === file.sha256 ? "same" : "other"
  } catch (cause) {
    if (isMissing(cause)) return "missing"
    throw cause
  }
}

/** SHA-256 of a file, in hexadecimal digits. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash("sha256")
  for await (const chunk of createReadStream(path, { highWaterMark: 2 ** 20 })) hash.update(chunk)
  return hash.digest("hex")
}
