import { mkdir, rename } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import type { FrozenWeights, ModelStore } from "../engine/engine.ts"
import { writeDirectory } from "../files/atomic-directory.ts"
import { inside, insideParent, namesIn } from "../files/inside.ts"
import { findChange } from "../files/intact.ts"
import { io, isThere } from "../files/io-error.ts"
import { checkpointManifest, readWritten, type WrittenFile } from "../files/manifest.ts"
import { moveOwn, removeOwn } from "../files/own-files.ts"
import { readRegular } from "../files/regular-file.ts"
import { settleFolder } from "../files/replace-files.ts"
import { removeTemporaries } from "../files/seal.ts"
import { GigpoError } from "../util/errors.ts"
import { type Json, jsonProblem } from "../util/state.ts"
import type { TaskDigests } from "./same-environment.ts"
import {
  type Memory,
  otherParts,
  type PartMemory,
  type Parts,
  remember,
  restoreMemory,
  writeMemory,
} from "./snapshot.ts"

/** A checkpoint whose files are whole. */
export interface Checkpoint {
  readonly directory: string
  /** Iterations completed when it was written. */
  readonly iteration: number
  /** Name of the environment that was trained in. */
  readonly environment?: string | undefined
  /** Digests of the files that its tasks were read from. */
  readonly taskFiles?: TaskDigests | undefined
  /** What the engine gave to find its own part again, and what the critic gave, where there was one. */
  readonly handle: Json
  readonly critic?: Json | undefined
  /** What estimator, loss, hooks and tasks remembered, by role. */
  readonly memory: Readonly<Record<string, PartMemory>>
}

/** Version 1, of gigpo 0.1, has `optimizerSteps` in place of the handle, and no memory. */
interface Manifest {
  readonly version: 2
  readonly gigpo: string
  readonly iteration: number
  readonly environment?: string | undefined
  readonly taskFiles?: TaskDigests | undefined
  readonly handle: Json
  readonly critic?: Json | undefined
  readonly memory: Readonly<Record<string, PartMemory>>
  readonly files: readonly WrittenFile[]
}

/** What goes into a checkpoint. */
export interface Saved {
  readonly store: ModelStore
  /** Where a critic is trained beside the policy: its store. It begins from the policy's weights when it is first asked for. */
  readonly critic?: (() => Promise<ModelStore>) | undefined
  /** Copied beside the weights (the tokenizer's). */
  readonly files?: readonly string[]
  /** Name of the environment that is trained in. */
  readonly environment?: string | undefined
  /** Digests of the files that its tasks are read from. */
  readonly taskFiles?: TaskDigests | undefined
  /** What may remember something: estimator, loss, hooks, tasks. */
  readonly parts?: Parts
  /** What the run depends on and no checkpoint holds; its config.json tells them. */
  readonly frozen?: FrozenWeights | undefined
  /** What they remembered, where that was asked before. Default: what they remember now. */
  readonly memory?: Memory
}

const criticFolder = "critic"
/** Where the checkpoint after so many iterations lies. */
export function checkpointPath(parent: string, iteration: number): string {
  return join(parent, `step-${iteration}`)
}

const stepName = /^step-(\d+)$/
const leftover = /^step-\d+\.tmp-/ // of writes that were killed

/** The same folder, looked at: neither it nor `parent` may be a link (`UNSAFE_PATH`). */
async function ownCheckpoint(parent: string, iteration: number): Promise<string> {
  return await insideParent(checkpointPath(parent, iteration))
}

/**
 * Writes `parent`/step-`iteration`, whole or not at all, and reads it back.
 *
 * @throws GigpoError `NON_FINITE` when a weight or moment is not finite, `IO` when the system cannot write. Other
 * checkpoints stay as they are.
 */
export async function writeCheckpoint(
  parent: string,
  iteration: number,
  { store, critic, files = [], environment, taskFiles, parts = {}, memory = remember(parts) }: Saved,
): Promise<Checkpoint> {
  const directory = await ownCheckpoint(parent, iteration)
  const fill = async (temporary: string): Promise<Omit<Manifest, "gigpo" | "files">> => {
    const handle = await checkpointOf(store, temporary, iteration, files)
    const beside = critic && (await criticOf(await critic(), temporary, iteration))
    return {
      version: 2,
      iteration,
      environment,
      taskFiles,
      handle,
      ...beside,
      memory: await writeMemory(temporary, memory),
    }
  }
  if (!(await isWholeOrNone(directory))) await setAside(parent, iteration)
  await writeDirectory(directory, fill, { overwrite: true, manifest: checkpointManifest })
  return await verifyCheckpoint(directory)
}

async function checkpointOf(
  store: ModelStore,
  folder: string,
  iteration: number,
  files?: readonly string[],
): Promise<Json> {
  const handle = await store.checkpoint(folder, files && { files }).catch((error) => {
    throw GigpoError.is(error) && error.code === "NON_FINITE" ? diverged(error, iteration) : error
  })
  const problem = jsonProblem(handle, "it")
  if (problem)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The engine's store.checkpoint() must return what JSON can hold, for its restore() to find the state again, but ${problem}.`,
    )
  return handle
}

/** The critic has a folder of its own in the checkpoint. */
async function criticOf(store: ModelStore, temporary: string, iteration: number): Promise<{ readonly critic: Json }> {
  const folder = join(temporary, criticFolder)
  await io("create", folder, mkdir(folder))
  return { critic: await checkpointOf(store, folder, iteration) }
}

/** The newest checkpoint that is whole; `onWarning` is told of newer ones that are not. */
export async function findCheckpoint(
  parent: string,
  onWarning: (message: string) => void,
): Promise<Checkpoint | undefined> {
  for (const iteration of await listCheckpoints(parent)) {
    const directory = await ownCheckpoint(parent, iteration)
    try {
      return await verifyCheckpoint(directory)
    } catch (error) {
      if (!GigpoError.is(error) || error.code !== "RUN_CORRUPT") throw error
      onWarning(`${error.message} An older checkpoint is looked for.`)
    }
  }
  return undefined
}

/** Checks every size and hash of the manifest, and that nothing was added which would be read. Throws `RUN_CORRUPT` at the first that differs, `IO`. */
export async function verifyCheckpoint(directory: string): Promise<Checkpoint> {
  await settleFolder(directory)
  const { iteration, environment, taskFiles, handle, critic, memory } = await readManifest(directory)
  const [, step] = stepName.exec(basename(directory)) ?? []
  if (step !== undefined && Number(step) !== iteration)
    throw corrupt(directory, `it holds what was written after iteration ${iteration}`)
  const change = await findChange(directory, "everything")
  if (change !== undefined) throw corrupt(directory, change)
  return { directory, iteration, environment, taskFiles, handle, ...(critic !== undefined && { critic }), memory }
}

/** Removes all but the `keep` newest checkpoints up to `newest`, and what interrupted writes left; never those of `spared`. */
export async function pruneCheckpoints(
  parent: string,
  newest: number,
  keep: number,
  spared: readonly (number | undefined)[] = [],
): Promise<void> {
  const upTo = (await listCheckpoints(parent)).filter((iteration) => iteration <= newest)
  const old = upTo.slice(Math.max(keep, 1)).filter((iteration) => !spared.includes(iteration))
  for (const iteration of old) await removeOwn(await ownCheckpoint(parent, iteration))
  await removeTemporaries(
    parent,
    (await list(parent)).filter((name) => leftover.test(name)),
  )
}

/** Sets the checkpoints after `iteration` aside: nothing looks for them there, and nothing is lost. */
export async function setCheckpointsAside(parent: string, iteration: number): Promise<void> {
  for (const later of (await listCheckpoints(parent)).filter((one) => one > iteration)) await setAside(parent, later)
}

/** Whether there is no checkpoint, or one that can be replaced as a whole. */
async function isWholeOrNone(directory: string): Promise<boolean> {
  if (!(await isThere(join(directory, checkpointManifest)))) return true
  try {
    await verifyCheckpoint(directory)
    return true
  } catch (error) {
    if (GigpoError.is(error) && error.code === "RUN_CORRUPT") return false
    throw error
  }
}

/** Moves the files of step-N to suspect-N, or to suspect-N-2 and so on; the whole folder where its manifest cannot tell which. */
async function setAside(parent: string, iteration: number): Promise<void> {
  const taken = new Set(await list(parent))
  let to = `suspect-${iteration}`
  for (let next = 2; taken.has(to); next++) to = `suspect-${iteration}-${next}`
  const [from, place] = [await ownCheckpoint(parent, iteration), join(parent, to)]
  if (await readWritten(from)) await moveOwn(from, place)
  else await io("rename", from, rename(from, place))
}

/** Whether a folder is called what checkpoints are. */
export function isCheckpointName(path: string): boolean {
  return stepName.test(basename(path))
}

/** Whether there is any checkpoint, whole or not. */
export async function hasCheckpoints(parent: string): Promise<boolean> {
  return (await listCheckpoints(parent)).length > 0
}

/** Iterations that have a checkpoint, whole or not, newest first. */
export async function listCheckpoints(parent: string): Promise<number[]> {
  const iterations = (await list(parent)).map((entry) => stepName.exec(entry)?.[1]).filter((n) => n !== undefined)
  return iterations.map(Number).sort((a, b) => b - a)
}

async function list(parent: string): Promise<string[]> {
  return await namesIn(dirname(parent), basename(parent))
}

async function readManifest(directory: string): Promise<Manifest> {
  let manifest: Partial<Omit<Manifest, "version">> & { readonly version?: unknown; readonly optimizerSteps?: number }
  try {
    manifest = JSON.parse(await readRegular(await inside(directory, checkpointManifest))) ?? {}
  } catch (cause) {
    if (GigpoError.is(cause)) throw cause
    throw corrupt(directory, "it has no readable manifest.json", cause)
  }
  const { version, iteration, environment, taskFiles, optimizerSteps, critic, files, memory = {} } = manifest
  const {
    handle = version === 1 && Number.isSafeInteger(optimizerSteps) ? { optimizerSteps: optimizerSteps! } : undefined,
  } = manifest
  if ((version !== 1 && version !== 2) || !Number.isSafeInteger(iteration) || handle === undefined)
    throw corrupt(directory, "its manifest.json is not of a version that this gigpo reads")
  if (!Array.isArray(files) || !files.every((file) => typeof file?.name === "string"))
    throw corrupt(directory, "its manifest.json names no files")
  return {
    version: 2,
    gigpo: manifest.gigpo ?? "",
    iteration: iteration!,
    environment,
    taskFiles,
    handle,
    critic,
    memory,
    files,
  }
}

/** Refuses (`BAD_CONFIG`) to go on from a checkpoint with other parts than it was written with. */
export function checkParts({ directory, memory }: Checkpoint, parts: Parts): void {
  if (Object.keys(memory).length === 0) return // of gigpo 0.1
  for (const [role, how] of otherParts(parts, memory))
    throw new GigpoError(
      "BAD_CONFIG",
      `The checkpoint ${directory} was written with another ${role}: ${how}. Set it back to resume, or fork the run into a new folder.`,
    )
}

/**
 * Puts weights and optimizer back to what a checkpoint holds, and the parts that are the same as then; of the others it returns
 * a sentence each: they begin anew.
 */
export async function restoreCheckpoint(
  checkpoint: Checkpoint,
  { store, critic, parts = {} }: Saved,
): Promise<string[]> {
  const { directory, handle, memory } = checkpoint
  await store.restore(handle, directory)
  const criticStore = await critic?.() // begins from what the policy is now
  if (checkpoint.critic !== undefined) await criticStore?.restore(checkpoint.critic, join(directory, criticFolder))
  const others = otherParts(parts, memory)
  await restoreMemory(
    directory,
    Object.fromEntries(Object.entries(parts).filter(([role]) => !others.has(role))),
    memory,
  )
  return Object.keys(memory).length === 0 ? [] : Array.from(others, ([role, how]) => `The ${role} begins anew: ${how}.`)
}

function diverged(cause: GigpoError, iteration: number): GigpoError {
  return new GigpoError("NON_FINITE", `After iteration ${iteration}, ${cause.message}`, { cause })
}

function corrupt(directory: string, what: string, cause?: unknown): GigpoError {
  return new GigpoError("RUN_CORRUPT", `The checkpoint ${directory} is damaged: ${what}.`, { cause })
}
