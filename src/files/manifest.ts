import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { lstat, readdir, stat, writeFile } from "node:fs/promises"
import { join, sep } from "node:path"
import { version } from "../util/version.ts"
import { inside, insideModel } from "./inside.ts"
import { io, isMissing } from "./io-error.ts"
import { readIfThere } from "./regular-file.ts"

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
/** Where files wait for being moved to their places. */
export const readyFolder = ".gigpo-ready"

/** What a folder's manifest says of its files, the manifest aside. */
export interface Written {
  readonly manifest: string
  readonly files: readonly WrittenFile[]
  /** By what a model was made: "initialize", "sft" or "train". */
  readonly made?: unknown
  /** Iterations that a run's model was trained for. */
  readonly iteration?: unknown
  /** The manifest as it lies there. */
  readonly text: string
}

/** What this package wrote into a folder; undefined where no manifest tells. Throws `UNSAFE_PATH` for a manifest that is a link. */
export async function readWritten(folder: string): Promise<Written | undefined> {
  for (const manifest of [folderManifest, checkpointManifest]) {
    const text = await readIfThere(await insideModel(folder, manifest))
    const written = text === undefined ? undefined : parse(text)
    if (written) return { manifest, ...written, text: text! }
  }
  return undefined
}

/** What no file of ours has in its name, and what separates folders where it does so. */
const foreignMark = sep === "\\" ? /[\0\\:]/ : /\0/

/** One that names what lies elsewhere is none of ours. */
function parse(text: string): Omit<Written, "manifest" | "text"> | undefined {
  try {
    const { gigpo, version, files, made, iteration } = JSON.parse(text)
    const isFile = ({ name, bytes, sha256 }: WrittenFile) =>
      typeof name === "string" &&
      name.split("/").every((part) => !["", ".", ".."].includes(part)) &&
      !foreignMark.test(name) &&
      typeof bytes === "number" &&
      typeof sha256 === "string"
    const isOurs = typeof gigpo === "string" || version === 1 // of checkpoints of gigpo 0.1
    return isOurs && Array.isArray(files) && files.every(isFile) ? { files, made, iteration } : undefined
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
  const manifest = { gigpo: version, ...about, files }
  const sha256 = digestOf(manifest)
  await writeFile(join(folder, name), `${JSON.stringify({ ...manifest, sha256 }, null, 2)}\n`)
}

/** Whether a manifest is what was written, by the digest that it has of itself; those of older versions have none. */
export function hasOwnDigest(text: string): boolean {
  const { sha256, ...manifest } = JSON.parse(text)
  return sha256 === undefined || sha256 === digestOf(manifest)
}

function digestOf(manifest: object): string {
  return createHash("sha256").update(JSON.stringify(manifest)).digest("hex")
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

/**
 * Whether a file still is what was written: "missing", "same" or "other".
 *
 * @param place - where a name of the folder is read. Default: `inside`, which refuses links (`UNSAFE_PATH`).
 */
export async function compareFile(
  folder: string,
  file: WrittenFile,
  place: (folder: string, name: string) => Promise<string> = inside,
): Promise<"missing" | "same" | "other"> {
  const path = await place(folder, file.name)
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
