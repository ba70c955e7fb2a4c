import { basename, dirname, join } from "node:path"
import { GigpoError, type GigpoErrorCode } from "../util/errors.ts"
import { compared } from "./compared.ts"
import { namesIn } from "./inside.ts"
import { io, isThere } from "./io-error.ts"
import {
  type CheckpointName,
  checkpointManifest,
  checkpointsIn,
  folderManifest,
  hasOwnDigest,
  parseCheckpointName,
  readWritten,
  readyFolder,
  type Written,
} from "./manifest.ts"
import { checkModelLinks } from "./model-links.ts"

// Files are compared with their manifest before they are read: a flipped bit in a weight has no other symptom.

/** Names that opening a folder looks for: an added one would be read in place of, or next to, the original files. */
const read = {
  model: ["config.json", "model.safetensors", "model.safetensors.index.json", "remote.json"],
  adapter: ["adapter_config.json", "adapter_model.safetensors"],
  tokenizer: [
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "special_tokens_map.json",
    "added_tokens.json",
    "generation_config.json",
  ],
} as const
const anyRead: readonly string[] = Object.values(read).flat()

/** Part of a folder to open. A shape is a model without weights, for a remote engine. */
export type Part = "model" | "shape" | "tokenizer" | "everything"

const isOf: Readonly<Record<Part, (name: string) => boolean>> = {
  model: (name) => [...read.model, ...read.adapter].some((one) => one === name) || /^[^/]+\.safetensors$/.test(name),
  shape: (name) => name === "config.json" || name === "remote.json",
  tokenizer: (name) => name === "config.json" || read.tokenizer.some((one) => one === name),
  everything: () => true,
}

/** Folders that belong to their parent folder. */
const inner: readonly string[] = ["optimizer", "critic"]
/** Folder of named chat templates. */
const templates = "additional_chat_templates"
/** Files that are only copied with a tokenizer. */
const copied = ["vocab.json", "merges.txt"] as const

/**
 * Rejects (`UNSAFE_PATH`) links and special files among the files that opening a model folder reads. See
 * `checkModelLinks`.
 */
export async function checkLinks(folder: string): Promise<void> {
  const names: readonly string[] = [
    ...anyRead,
    ...copied,
    ...inner,
    templates,
    readyFolder,
    folderManifest,
    checkpointManifest,
  ]
  await checkModelLinks(folder, (name) => names.includes(name) || name.endsWith(".safetensors"))
}

/**
 * Rejects a folder whose files differ from its manifest. A folder without a manifest passes, unless it is a checkpoint
 * of a run.
 *
 * @throws GigpoError `BAD_MODEL` or `BAD_TOKENIZER` with the file, and an alternative if there is one
 */
export async function checkIntact(folder: string, part: Exclude<Part, "everything">): Promise<void> {
  await checkLinks(folder)
  const change = await findChange(folder, part)
  if (change === undefined) return
  const code: GigpoErrorCode = part === "tokenizer" ? "BAD_TOKENIZER" : "BAD_MODEL"
  const manifest = (await isThere(join(folder, folderManifest)))
    ? ` If the change is intended, remove ${join(folder, folderManifest)} to skip this check.`
    : ""
  throw new GigpoError(code, `${folder} is damaged: ${change}. ${await wayOut(folder)}${manifest}`)
}

/** First difference of a folder from its manifest, as a clause that names the file; undefined if there is none. */
export async function findChange(folder: string, part: Part): Promise<string | undefined> {
  const found = await manifestOf(folder)
  if (typeof found !== "object") return found
  const { written, prefix } = found
  const files = written.files
    .filter(({ name }) => name.startsWith(prefix))
    .map((file) => ({ ...file, name: file.name.slice(prefix.length) }))
  const own = files.filter(({ name }) => isOf[part](name))
  // Small files first: a truncated configuration is reported before gigabytes are read.
  for (const file of own.toSorted((a, b) => a.bytes - b.bytes)) {
    const { name } = file
    const state = await io("read", join(folder, name), compared(folder, file))
    if (state === "missing") return `${name} is listed in ${written.manifest} but missing`
    if (state === "other") return `${name} was changed (${written.manifest} has another size or SHA-256)`
  }
  const added = await addedTo(folder, part, new Set(files.map(({ name }) => name)))
  return added && `${added} was added since the folder was written (it is not listed in ${written.manifest})`
}

async function addedTo(folder: string, part: Part, known: ReadonlySet<string>): Promise<string | undefined> {
  const present = await namesIn(folder)
  // A tokenizer may be added to a model that was saved without one.
  const kinds = Object.values(read).filter((names) => names.some((name) => name !== "config.json" && known.has(name)))
  const sharded = [...known].some((name) => /^[^/]+\.safetensors$/.test(name))
  const names: readonly string[] = [...kinds.flat(), ...(sharded ? read.model : [])]
  return present.find((name) => names.includes(name) && anyRead.includes(name) && isOf[part](name) && !known.has(name))
}

interface Manifested {
  /** Prefix of the folder's files in the manifest. */
  readonly prefix: string
  readonly written: Written
}

/** Manifest that lists a folder's files; a clause if it is damaged, undefined if there is none. */
async function manifestOf(folder: string): Promise<Manifested | string | undefined> {
  const written = await readWritten(folder)
  if (written) {
    const problem = manifestProblem(written)
    return problem ?? { prefix: "", written }
  }
  if (await isThere(join(folder, folderManifest))) return `its ${folderManifest} cannot be read`
  if (parseCheckpointName(basename(folder)) && basename(dirname(folder)) === "checkpoints")
    return `it has no readable ${checkpointManifest}`
  if (!inner.includes(basename(folder))) return undefined
  const above = await manifestOf(dirname(folder))
  if (typeof above !== "object") return above
  const prefix = `${above.prefix}${basename(folder)}/`
  return above.written.files.some(({ name }) => name.startsWith(prefix)) ? { ...above, prefix } : undefined
}

function manifestProblem({ manifest, text }: Written): string | undefined {
  return hasOwnDigest(text) ? undefined : `${manifest} was changed (its own SHA-256 differs)`
}

/** Advice for a damaged folder. */
async function wayOut(folder: string): Promise<string> {
  const other = await intactCheckpoint(folder)
  return other === undefined
    ? "Restore the file from a copy, or create the folder again."
    : `The checkpoint ${other} of the same run is intact; use it instead.`
}

/** Intact checkpoint of the same run: the newest before the given one, else the newest. */
export async function intactCheckpoint(folder: string): Promise<string | undefined> {
  const checkpoint = parseCheckpointName(basename(folder))
  const parent = checkpoint ? dirname(folder) : join(dirname(folder), "checkpoints")
  const own = checkpoint?.count ?? Number.POSITIVE_INFINITY
  const others = await checkpointsIn(parent).catch(() => [])
  const order = ({ count }: CheckpointName) => (count < own ? count : count - Number.MAX_SAFE_INTEGER)
  for (const { name, count } of others.sort((a, b) => order(b) - order(a))) {
    const path = join(parent, name)
    if (count !== own && (await findChange(path, "everything")) === undefined) return path
  }
  return undefined
}
