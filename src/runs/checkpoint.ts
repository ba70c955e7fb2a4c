import { mkdir, rename } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import type { FrozenWeights, ModelStore, SamplerSnapshot } from "../engine/engine.ts"
import { writeDirectory } from "../files/atomic-directory.ts"
import { inside, insideParent, namesIn } from "../files/inside.ts"
import { findChange } from "../files/intact.ts"
import { io, isThere } from "../files/io-error.ts"
import {
  type CheckpointName,
  type CheckpointUnit,
  checkpointManifest,
  checkpointName,
  checkpointsIn,
  parseCheckpointName,
  readWritten,
  type WrittenFile,
} from "../files/manifest.ts"
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

/** Intact checkpoint. */
export interface Checkpoint {
  readonly directory: string
  /** Number of completed iterations; in supervised fine-tuning, of updates. */
  readonly iteration: number
  /** Name of the environment of the training. */
  readonly environment?: string | undefined
  /** Digests of the task files of the environment. */
  readonly taskFiles?: TaskDigests | undefined
  /** Reference of the engine to its state. */
  readonly handle: Json
  /** Reference of the engine to the state of the critic, if there was one. */
  readonly critic?: Json | undefined
  /** Weights of the next rollout, if it began before the last update of the policy. */
  readonly sampler?: KeptSampler | undefined
  /** Snapshots of estimator, loss, hooks and tasks, by role. */
  readonly memory: Readonly<Record<string, PartMemory>>
}

/** Reference to the weights of a rollout. */
export interface KeptSampler {
  /** Reference of the engine to the weights. */
  readonly handle: Json
  /** Number of completed iterations of the weights. */
  readonly iteration: number
}

/** Content of manifest.json. Version 1, of gigpo 0.1, has `optimizerSteps` in place of `handle`, and no `memory`. */
interface Manifest {
  readonly version: 2
  readonly gigpo: string
  readonly iteration: number
  readonly environment?: string | undefined
  readonly taskFiles?: TaskDigests | undefined
  readonly handle: Json
  readonly critic?: Json | undefined
  readonly sampler?: KeptSampler | undefined
  readonly memory: Readonly<Record<string, PartMemory>>
  readonly files: readonly WrittenFile[]
}

/** Content of a checkpoint. */
export interface Saved {
  readonly store: ModelStore
  /** Returns the store of the critic, if one is trained. The critic starts from the policy's weights at the first call. */
  readonly critic?: (() => Promise<ModelStore>) | undefined
  /** Weights of the next rollout, if it began before the last update of the policy. */
  readonly sampler?: { readonly snapshot: SamplerSnapshot; readonly iteration: number } | undefined
  /** Files that are copied into the checkpoint (those of the tokenizer). */
  readonly files?: readonly string[]
  /** Name of the environment of the training. */
  readonly environment?: string | undefined
  /** Digests of the task files of the environment. */
  readonly taskFiles?: TaskDigests | undefined
  /** Parts that may have a state: estimator, loss, hooks, tasks. */
  readonly parts?: Parts
  /** Digests of the weights that the run depends on and that no checkpoint contains. Stored in config.json. */
  readonly frozen?: FrozenWeights | undefined
  /** Snapshots of the parts. Default: their current states. */
  readonly memory?: Memory
  /** What the number of a checkpoint counts. Default "iteration". */
  readonly unit?: CheckpointUnit | undefined
}

const criticFolder = "critic"
const samplerFolder = "sampler"

/** Returns the folder of the weights of the next rollout in a checkpoint. */
export function samplerPath({ directory }: Pick<Checkpoint, "directory">): string {
  return join(directory, samplerFolder)
}

/** Returns the path of the checkpoint after a number of iterations. */
export function checkpointPath(parent: string, iteration: number): string {
  return join(parent, checkpointName(iteration))
}

/** Whether a name is that of an unfinished checkpoint, from a write that was killed. */
const isLeftover = (name: string) =>
  name.includes(".tmp-") && parseCheckpointName(name.split(".tmp-")[0]!) !== undefined
const formerName = /^step-\d+$/

/** Path of a checkpoint after a check that neither the folder nor `parent` is a link (`UNSAFE_PATH`). */
async function ownCheckpoint(parent: string, name: string): Promise<string> {
  return await insideParent(join(parent, name))
}

/**
 * Writes `parent`/iteration-`iteration`, or update-`iteration`, atomically and verifies the result.
 *
 * @throws GigpoError `NON_FINITE` for a weight or moment that is not finite, `IO` for an error of the system. Other checkpoints are not
 * changed then.
 */
export async function writeCheckpoint(
  parent: string,
  iteration: number,
  { store, critic, sampler, files = [], environment, taskFiles, parts = {}, memory = remember(parts), unit }: Saved,
): Promise<Checkpoint> {
  const name = checkpointName(iteration, unit)
  const directory = await ownCheckpoint(parent, name)
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
      ...(sampler && { sampler: await samplerOf(sampler, temporary) }),
      memory: await writeMemory(temporary, memory),
    }
  }
  if (!(await isWholeOrNone(directory))) await setAside(parent, { name, count: iteration })
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
  return checkedHandle(handle, "store.checkpoint() of the engine", "restore()")
}

function checkedHandle(handle: Json, from: string, to: string): Json {
  const problem = jsonProblem(handle, "it")
  if (problem === undefined) return handle
  throw new GigpoError("BAD_ARGUMENT", `${from} must return a JSON value, which ${to} receives, but ${problem}.`)
}

/** Writes the critic into a separate folder of the checkpoint. */
async function criticOf(store: ModelStore, temporary: string, iteration: number): Promise<{ readonly critic: Json }> {
  const folder = join(temporary, criticFolder)
  await io("create", folder, mkdir(folder))
  return { critic: await checkpointOf(store, folder, iteration) }
}

/** Writes the weights of the next rollout into a separate folder of the checkpoint. */
async function samplerOf(
  { snapshot, iteration }: NonNullable<Saved["sampler"]>,
  temporary: string,
): Promise<KeptSampler> {
  const folder = samplerPath({ directory: temporary })
  await io("create", folder, mkdir(folder))
  return { handle: checkedHandle(await snapshot.save(folder), "keep() of a snapshot", "Snapshots.open()"), iteration }
}

/** Returns the newest intact checkpoint. Warns about newer ones that are damaged. */
export async function findCheckpoint(
  parent: string,
  onWarning: (message: string) => void,
): Promise<Checkpoint | undefined> {
  const found = await checkpointsIn(parent)
  if (found.length === 0) await refuseFormerNames(parent)
  for (const { name } of found) {
    const directory = await ownCheckpoint(parent, name)
    try {
      return await verifyCheckpoint(directory)
    } catch (error) {
      if (!GigpoError.is(error) || error.code !== "RUN_CORRUPT") throw error
      onWarning(`${error.message} Looking for an older checkpoint.`)
    }
  }
  return undefined
}

/**
 * Verifies the sizes and hashes of all files of a checkpoint, and that no file was added that would be read.
 *
 * @throws GigpoError `RUN_CORRUPT` for a damaged checkpoint, `IO` for an error of the system.
 */
export async function verifyCheckpoint(directory: string): Promise<Checkpoint> {
  await settleFolder(directory)
  const { iteration, environment, taskFiles, handle, critic, sampler, memory } = await readManifest(directory)
  const { count = iteration } = parseCheckpointName(basename(directory)) ?? {}
  if (count !== iteration) throw corrupt(directory, `its manifest.json is of iteration ${iteration}`)
  const change = await findChange(directory, "everything")
  if (change !== undefined) throw corrupt(directory, change)
  return {
    ...{ directory, iteration, environment, taskFiles, handle, memory },
    ...(critic !== undefined && { critic }),
    ...(sampler !== undefined && { sampler }),
  }
}

/** Removes all but the `keep` newest checkpoints up to `newest`, except those of `spared`, and unfinished files of interrupted writes. */
export async function pruneCheckpoints(
  parent: string,
  newest: number,
  keep: number,
  spared: readonly (number | undefined)[] = [],
): Promise<void> {
  const upTo = (await checkpointsIn(parent)).filter(({ count }) => count <= newest)
  const old = upTo.slice(Math.max(keep, 1)).filter(({ count }) => !spared.includes(count))
  for (const { name } of old) await removeOwn(await ownCheckpoint(parent, name))
  await removeTemporaries(parent, (await list(parent)).filter(isLeftover))
}

/** Renames the checkpoints after `iteration` to suspect-N, so that they are neither used nor lost. */
export async function setCheckpointsAside(parent: string, iteration: number): Promise<void> {
  for (const later of (await checkpointsIn(parent)).filter(({ count }) => count > iteration))
    await setAside(parent, later)
}

/** Whether there is no checkpoint, or an intact one, which can be replaced. */
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

/** Moves the files of a checkpoint to suspect-N, or suspect-N-2 and so on. Moves the whole folder if the manifest does not list the files. */
async function setAside(parent: string, { name, count }: Pick<CheckpointName, "name" | "count">): Promise<void> {
  const taken = new Set(await list(parent))
  let to = `suspect-${count}`
  for (let next = 2; taken.has(to); next++) to = `suspect-${count}-${next}`
  const [from, place] = [await ownCheckpoint(parent, name), join(parent, to)]
  if (await readWritten(from)) await moveOwn(from, place)
  else await io("rename", from, rename(from, place))
}

/** Whether a path has the name of a checkpoint folder. */
export function isCheckpointName(path: string): boolean {
  return parseCheckpointName(basename(path)) !== undefined
}

/** Throws `RUN_CORRUPT` for checkpoints with the names of an earlier version. */
async function refuseFormerNames(parent: string): Promise<void> {
  const former = (await list(parent)).find((name) => formerName.test(name))
  if (former === undefined) return
  const count = former.slice("step-".length)
  throw new GigpoError(
    "RUN_CORRUPT",
    `${join(parent, former)} has the name of an earlier version: rename it to ${checkpointName(Number(count))}, or to ` +
      `${checkpointName(Number(count), "update")} in a supervised fine-tuning.`,
  )
}

/** Whether there is any checkpoint, intact or damaged. */
export async function hasCheckpoints(parent: string): Promise<boolean> {
  return (await checkpointsIn(parent)).length > 0
}

/** Returns the iterations (in SFT: updates) with a checkpoint, intact or damaged, newest first. */
export async function listCheckpoints(parent: string): Promise<number[]> {
  return (await checkpointsIn(parent)).map(({ count }) => count)
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
  const { version, iteration, environment, taskFiles, optimizerSteps, critic, sampler, files, memory = {} } = manifest
  const {
    handle = version === 1 && Number.isSafeInteger(optimizerSteps) ? { optimizerSteps: optimizerSteps! } : undefined,
  } = manifest
  if ((version !== 1 && version !== 2) || !Number.isSafeInteger(iteration) || handle === undefined)
    throw corrupt(directory, "this version of gigpo does not support its manifest.json")
  if (!Array.isArray(files) || !files.every((file) => typeof file?.name === "string"))
    throw corrupt(directory, "its manifest.json does not list files")
  return {
    version: 2,
    gigpo: manifest.gigpo ?? "",
    iteration: iteration!,
    environment,
    taskFiles,
    handle,
    critic,
    sampler,
    memory,
    files,
  }
}

/** Checks that the parts are those that a checkpoint was written with (`BAD_CONFIG`). */
export function checkParts({ directory, memory }: Checkpoint, parts: Parts): void {
  if (Object.keys(memory).length === 0) return // of gigpo 0.1
  for (const [role, how] of otherParts(parts, memory))
    throw new GigpoError(
      "BAD_CONFIG",
      `The checkpoint ${directory} was written with another ${role}: ${how}. Set it back to resume, or fork the run into a new folder.`,
    )
}

/**
 * Restores weights, optimizer and parts from a checkpoint. Parts that differ from those of the checkpoint start without a state.
 *
 * @returns a sentence about each part that differs
 */
export async function restoreCheckpoint(
  checkpoint: Checkpoint,
  { store, critic, parts = {} }: Saved,
): Promise<string[]> {
  const { directory, handle, memory } = checkpoint
  await store.restore(handle, directory)
  const criticStore = await critic?.() // starts from the current weights of the policy
  if (checkpoint.critic !== undefined) await criticStore?.restore(checkpoint.critic, join(directory, criticFolder))
  const others = otherParts(parts, memory)
  await restoreMemory(
    directory,
    Object.fromEntries(Object.entries(parts).filter(([role]) => !others.has(role))),
    memory,
  )
  return Object.keys(memory).length === 0
    ? []
    : Array.from(others, ([role, how]) => `The ${role} starts without its saved state: ${how}.`)
}

function diverged(cause: GigpoError, iteration: number): GigpoError {
  return new GigpoError("NON_FINITE", `After iteration ${iteration}, ${cause.message}`, { cause })
}

function corrupt(directory: string, what: string, cause?: unknown): GigpoError {
  return new GigpoError("RUN_CORRUPT", `The checkpoint ${directory} is damaged: ${what}.`, { cause })
}
