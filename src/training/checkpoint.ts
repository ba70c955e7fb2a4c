import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { NativePolicy } from "../engine/native/native-policy.ts"
import { GigpoError } from "../errors.ts"
import { writeDirectory } from "../files/atomic-directory.ts"
import { io, ioError, isSystemError } from "../files/io-error.ts"
import { openSafetensors } from "../model-files/safetensors.ts"
import { version } from "../version.ts"

/** What checkpoints ask of a policy. */
export type SavedPolicy = Pick<NativePolicy, "steps" | "save" | "saveOptimizer" | "load" | "loadOptimizer"> &
  Partial<Pick<NativePolicy, "lora" | "saveAdapter" | "loadAdapter">>

/** A checkpoint whose files are whole. */
export interface Checkpoint {
  /** A Hugging Face model folder, or PEFT's of an adapter, with AdamW's moments in optimizer/model.safetensors. */
  readonly directory: string
  /** Iterations completed when it was written. */
  readonly iteration: number
  readonly optimizerSteps: number
}

interface Manifest {
  readonly version: 1
  readonly gigpo: string
  readonly iteration: number
  readonly optimizerSteps: number
  /** Every weight and moment was looked at. */
  readonly finite: true
  readonly files: readonly { readonly name: string; readonly bytes: number; readonly sha256: string }[]
}

const stepName = /^step-(\d+)$/
const leftover = /^step-\d+\.(tmp|old)-[0-9a-f]{12}$/

/**
 * Writes `parent`/step-`iteration`, whole or not at all, and reads it back.
 *
 * @param files - copied beside the weights (the tokenizer's).
 * @throws GigpoError `NON_FINITE` when a weight or moment is not finite, `IO` when the system cannot write. Other
 * checkpoints stay as they are.
 */
export async function writeCheckpoint(
  parent: string,
  iteration: number,
  policy: SavedPolicy,
  files: readonly string[],
): Promise<Checkpoint> {
  const directory = join(parent, `step-${iteration}`)
  const fill = async (temporary: string): Promise<void> => {
    // A merged model could not be split again; the base stays where it is and is known by its hash.
    const adapter = policy.lora !== undefined
    await (adapter ? policy.saveAdapter?.(temporary, { files }) : policy.save(temporary, { files }))
    const optimizer = join(temporary, "optimizer")
    await mkdir(optimizer)
    await policy.saveOptimizer(join(optimizer, "model.safetensors"))
    await checkFinite(temporary, iteration, adapter ? "adapter_model.safetensors" : undefined)
    await checkFinite(optimizer, iteration)
    const manifest: Manifest = {
      version: 1,
      gigpo: version,
      iteration,
      optimizerSteps: policy.steps,
      finite: true,
      files: await describeFiles(temporary),
    }
    await writeFile(join(temporary, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`)
  }
  // One that is there already did not verify, or it would not be written again.
  await writeDirectory(directory, fill, { overwrite: true })
  return await verifyCheckpoint(directory)
}

/** The newest checkpoint that is whole; `onWarning` is told of newer ones that are not. */
export async function findCheckpoint(
  parent: string,
  onWarning: (message: string) => void,
): Promise<Checkpoint | undefined> {
  for (const iteration of await listCheckpoints(parent)) {
    try {
      return await verifyCheckpoint(join(parent, `step-${iteration}`))
    } catch (error) {
      if (!GigpoError.is(error) || error.code !== "RUN_CORRUPT") throw error
      onWarning(`${error.message} An older checkpoint is looked for.`)
    }
  }
  return undefined
}

/** Checks every size and hash of the manifest. Throws `RUN_CORRUPT` at the first that differs, `IO`. */
export async function verifyCheckpoint(directory: string): Promise<Checkpoint> {
  const { iteration, optimizerSteps, files } = await readManifest(directory)
  for (const { name, bytes, sha256 } of files) {
    const path = join(directory, name)
    try {
      if ((await stat(path)).size !== bytes) throw corrupt(directory, `${name} does not have its ${bytes} bytes`)
      if ((await hashFile(path)) !== sha256) throw corrupt(directory, `${name} is not what was written`)
    } catch (cause) {
      if (!isSystemError(cause)) throw cause
      throw cause.code === "ENOENT" ? corrupt(directory, `${name} is missing`) : ioError("read", path, cause)
    }
  }
  return { directory, iteration, optimizerSteps }
}

/** Removes all but the `keep` newest checkpoints up to `newest`, and what interrupted writes left. */
export async function pruneCheckpoints(parent: string, newest: number, keep: number): Promise<void> {
  const old = (await listCheckpoints(parent)).filter((iteration) => iteration <= newest).slice(Math.max(keep, 1))
  const names = [
    ...old.map((iteration) => `step-${iteration}`),
    ...(await list(parent)).filter((n) => leftover.test(n)),
  ]
  for (const one of names)
    await io("remove", join(parent, one), rm(join(parent, one), { recursive: true, force: true }))
}

/** Iterations that have a checkpoint, whole or not, newest first. */
async function listCheckpoints(parent: string): Promise<number[]> {
  const iterations = (await list(parent)).map((entry) => stepName.exec(entry)?.[1]).filter((n) => n !== undefined)
  return iterations.map(Number).sort((a, b) => b - a)
}

async function list(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (cause) {
    if (isSystemError(cause) && cause.code === "ENOENT") return []
    throw ioError("read", folder, cause)
  }
}

async function readManifest(directory: string): Promise<Manifest> {
  let manifest: Manifest
  try {
    manifest = JSON.parse(await readFile(join(directory, "manifest.json"), "utf8"))
  } catch (cause) {
    throw corrupt(directory, "it has no readable manifest.json", cause)
  }
  const { iteration, optimizerSteps, files } = manifest ?? {}
  if (manifest?.version !== 1 || !Number.isSafeInteger(iteration) || !Number.isSafeInteger(optimizerSteps))
    throw corrupt(directory, "its manifest.json is not of a version that this gigpo reads")
  if (!Array.isArray(files) || !files.every((file) => typeof file?.name === "string"))
    throw corrupt(directory, "its manifest.json names no files")
  return manifest
}

async function describeFiles(folder: string, prefix = ""): Promise<Manifest["files"]> {
  const files: Manifest["files"][number][] = []
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    const name = `${prefix}${entry.name}`
    if (entry.isDirectory()) files.push(...(await describeFiles(path, `${name}/`)))
    else files.push({ name, bytes: (await stat(path)).size, sha256: await hashFile(path) })
  }
  return files.sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash("sha256")
  for await (const chunk of createReadStream(path, { highWaterMark: 2 ** 20 })) hash.update(chunk)
  return hash.digest("hex")
}

/** Puts weights and optimizer back to what a checkpoint holds. */
export async function restoreCheckpoint({ directory, optimizerSteps }: Checkpoint, policy: SavedPolicy): Promise<void> {
  await (policy.lora ? policy.loadAdapter?.(directory) : policy.load(directory))
  await policy.loadOptimizer(join(directory, "optimizer"), optimizerSteps)
}

/** One bad update must not replace the last good checkpoint. */
async function checkFinite(directory: string, iteration: number, file?: string): Promise<void> {
  const files = await openSafetensors(directory, file)
  try {
    for (const tensor of files.names) {
      for await (const chunk of files.read(tensor)) {
        // Weights and moments are saved as float32: all bits of the exponent set means infinity or NaN.
        const bits = new Uint32Array(chunk.buffer, chunk.byteOffset, chunk.byteLength / 4)
        for (let i = 0; i < bits.length; i++)
          if ((bits[i]! & 0x7f800000) === 0x7f800000) throw diverged(tensor, iteration)
      }
    }
  } finally {
    await files.close()
  }
}

function diverged(tensor: string, iteration: number): GigpoError {
  return new GigpoError(
    "NON_FINITE",
    `After iteration ${iteration}, ${tensor} holds numbers that are not finite; older checkpoints stay as they are. Start a ` +
      "new run from one of them (its folder as the model) with a lower learning rate.",
  )
}

function corrupt(directory: string, what: string, cause?: unknown): GigpoError {
  return new GigpoError("RUN_CORRUPT", `The checkpoint ${directory} is damaged: ${what}.`, { cause })
}
