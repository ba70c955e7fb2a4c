import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { lstat, readdir, stat, writeFile } from "node:fs/promises"
import { basename, dirname, join, sep } from "node:path"
import { version } from "../util/version.ts"
import { inside, insideModel, namesIn } from "./inside.ts"
import { io, isMissing } from "./io-error.ts"
import { readIfThere } from "./regular-file.ts"

// A folder lists what this package wrote into it: only that is ever replaced or removed.

/** File as it was written. */
export interface WrittenFile {
  /** Path within the folder, with slashes. */
  readonly name: string
  readonly bytes: number
  readonly sha256: string
}

/** Name of the manifest. Checkpoint folders have a manifest with another name and more fields. */
export const folderManifest = "gigpo.json"
export const checkpointManifest = "manifest.json"
/** Folder of files that wait for being moved into place. */
export const readyFolder = ".gigpo-ready"

/** Content of a manifest about the other files of its folder. */
export interface Written {
  readonly manifest: string
  readonly files: readonly WrittenFile[]
  /** Origin of a model: "initialize", "sft" or "train". */
  readonly made?: unknown
  /** Training iterations of a run's model. */
  readonly iteration?: unknown
  /** Text of the manifest. */
  readonly text: string
}

/** Reads the manifest of a folder; undefined if there is none. Throws `UNSAFE_PATH` for a manifest that is a link. */
export async function readWritten(folder: string): Promise<Written | undefined> {
  for (const manifest of [folderManifest, checkpointManifest]) {
    const text = await readIfThere(await insideModel(folder, manifest))
    const written = text === undefined ? undefined : parse(text)
    if (written) return { manifest, ...written, text: text! }
  }
  return undefined
}

/** Characters that names written by gigpo never contain, including separators of this platform. */
const foreignMark = sep === "\\" ? /[\0\\:]/ : /\0/

/** Parses a manifest. A manifest with paths outside of its folder is invalid. */
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

/** Writes the manifest of all files in a folder. */
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

/** Whether a manifest matches its own digest; manifests of older versions have none. */
export function hasOwnDigest(text: string): boolean {
  const { sha256, ...manifest } = JSON.parse(text)
  return sha256 === undefined || sha256 === digestOf(manifest)
}

function digestOf(manifest: object): string {
  return createHash("sha256").update(JSON.stringify(manifest)).digest("hex")
}

/** Sorted names of all files below a folder, with slashes. */
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
 * Compares a file with its manifest entry: "missing", "same" or "other".
 *
 * @param place - resolves a name of the folder. Default: `inside`, which rejects links (`UNSAFE_PATH`).
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

/** SHA-256 of a file, in hexadecimal. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash("sha256")
  for await (const chunk of createReadStream(path, { highWaterMark: 2 ** 20 })) hash.update(chunk)
  return hash.digest("hex")
}

/** What the number of a checkpoint counts: iterations of a training, or updates of a supervised fine-tuning. */
export type CheckpointUnit = "iteration" | "update"

/** Name of a checkpoint's folder, such as "iteration-12", in parts. */
export interface CheckpointName {
  readonly name: string
  readonly unit: CheckpointUnit
  /** Number of completed iterations or updates. */
  readonly count: number
}

const pattern = /^(iteration|update)-(\d+)$/

/** Returns the name of a checkpoint's folder. */
export function checkpointName(count: number, unit: CheckpointUnit = "iteration"): string {
  return `${unit}-${count}`
}

/** Parses the name of a checkpoint's folder; undefined for another name. */
export function parseCheckpointName(name: string): CheckpointName | undefined {
  const [, unit, count] = pattern.exec(name) ?? []
  return unit === undefined ? undefined : { name, unit: unit as CheckpointUnit, count: Number(count) }
}

/** Returns the checkpoints in a folder, intact or damaged, newest first. */
export async function checkpointsIn(parent: string): Promise<CheckpointName[]> {
  const names = await namesIn(dirname(parent), basename(parent))
  return names.flatMap((name) => parseCheckpointName(name) ?? []).sort((a, b) => b.count - a.count)
}
