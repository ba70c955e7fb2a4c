import { dirname, join, resolve } from "node:path"
import { resolveFolder } from "../files/atomic-directory.ts"
import { intactCheckpoint } from "../files/intact.ts"
import { isThere } from "../files/io-error.ts"
import { checkpointManifest } from "../files/manifest.ts"
import { readIfThere } from "../files/regular-file.ts"
import { GigpoError } from "../util/errors.ts"
import { findLogDamage } from "./check-metrics.ts"
import { type Checkpoint, findCheckpoint, hasCheckpoints, isCheckpointName, verifyCheckpoint } from "./checkpoint.ts"
import {
  changeableKeys,
  checkSameConfig,
  configDifferences,
  formatRunConfig,
  type ResolvedLearningRates,
  type RunConfig,
  readRunConfig,
  settledIn,
} from "./config.ts"
import { runFiles } from "./files.ts"
import { folderState, type RunMode, refuseBrokenRun } from "./folder.ts"
import { linesUpTo } from "./metrics-log.ts"

/** What a run begins as. */
export interface Start {
  readonly kind: "new" | "replace" | "resume"
  /** Whether a run that is there begins again with another configuration, since nothing of it was saved. */
  readonly fresh?: boolean
  /** Of config.json. */
  readonly text: string
  /** Where weights and all that has a memory come from. */
  readonly checkpoint?: Checkpoint | undefined
  readonly fork?: Fork | undefined
  /** What the run that goes on chose when it began. */
  readonly settled?: ResolvedLearningRates
}

interface Fork {
  readonly run: string
  /** Of fork.json, which tells where to begin again until there is a checkpoint. */
  readonly text: string
}

interface StartOptions extends RunMode {
  readonly mayChange?: readonly string[]
  readonly complete?: ((config: RunConfig) => object) | undefined
  readonly onWarning: (message: string) => void
}

/** Where a run in this folder, in which there is a run or nothing, begins or goes on. Changes nothing. */
export async function findStart(
  directory: string,
  state: "nothing" | "run",
  config: object,
  options: StartOptions,
): Promise<Start> {
  const { resume, fork, onWarning } = options
  const text = formatRunConfig(config)
  if (resume && state === "run") return { kind: "resume", text, ...(await findResumable(directory, config, options)) }
  const kind = state === "run" ? "replace" : "new"
  if (fork === undefined) return { kind, text }

  return { kind, text, ...forkFrom(await findFork(resolve(fork), onWarning)) }
}

/** A run that has saved nothing begins again, and may have another configuration then. */
async function findResumable(
  directory: string,
  config: object,
  { mayChange = changeableKeys, complete, onWarning, fork }: StartOptions,
): Promise<Omit<Start, "kind" | "text">> {
  const old = await readRunConfig(join(directory, runFiles.config))
  if (!old) throw nothingToResume(directory, "its config.json cannot be read")
  const forked = await forkOf(directory)
  if (fork !== undefined) await checkIsFork(directory, forked, fork)
  const before = complete?.(old) ?? old
  const checkpoints = join(directory, runFiles.checkpoints)
  const checkpoint = await findCheckpoint(checkpoints, onWarning)
  if (checkpoint) {
    checkSameConfig(directory, before, config, mayChange)
    await checkLog(directory, checkpoint)
    return { checkpoint, settled: settledIn(old) }
  }
  if (await hasCheckpoints(checkpoints)) throw nothingToResume(directory, "it has no whole checkpoint")
  const changed = configDifferences(before, config, mayChange)
  if (changed.length > 0)
    onWarning(
      `Nothing of the run in ${directory} was saved, so it begins again as it is configured now: ${changed.join("; ")}.`,
    )
  const from = forked === undefined ? undefined : await namedCheckpoint(forked)
  if (changed.length === 0) return { checkpoint: from, settled: settledIn(old) }
  return { fresh: true, ...(from && forkFrom(from)) }
}

/** Refuses (`RUN_CORRUPT`) a log that lacks iterations before the checkpoint: the best evaluation and stop rules depend on it. */
async function checkLog(directory: string, { directory: from, iteration, memory }: Checkpoint): Promise<void> {
  const damage = await findLogDamage(directory, { iteration, epochs: wholeEpochs(memory) })
  if (damage === undefined) return
  throw new GigpoError(
    "RUN_CORRUPT",
    `The run in ${directory} cannot be resumed: its ${runFiles.metrics} is damaged up to the checkpoint of iteration ` +
      `${iteration}: ${damage}. Put back a whole copy of that file, or go on from the checkpoint in another folder: --fork ${from}.`,
  )
}

/**
 * Lines of a run's log that a fork of a checkpoint begins with. None where they are damaged, with a warning, since a run with
 * such a log cannot be resumed.
 */
export async function forkedLog(
  run: string,
  { iteration, memory }: Checkpoint,
  onWarning: (message: string) => void,
): Promise<string> {
  const path = join(run, runFiles.metrics)
  if (!(await isThere(path))) return ""
  const damage = await findLogDamage(run, { iteration, epochs: wholeEpochs(memory) })
  if (damage === undefined) return await linesUpTo(path, iteration)
  onWarning(`The fork begins with an empty log, as ${path} is damaged: ${damage}.`)
  return ""
}

/** Epochs that a cloning had completed and reported at its checkpoint; undefined for a training. */
function wholeEpochs({ epoch }: Checkpoint["memory"]): number | undefined {
  const { epoch: whole } = (epoch?.json ?? {}) as { readonly epoch?: unknown }
  return typeof whole === "number" ? whole : undefined
}

/** The checkpoint that a run began with; undefined where it is no fork. */
async function forkOf(directory: string): Promise<string | undefined> {
  const path = join(directory, runFiles.fork)
  const text = await readIfThere(path)
  if (text === undefined) return undefined
  try {
    const { checkpoint } = JSON.parse(text)
    if (typeof checkpoint === "string") return checkpoint
  } catch {}
  throw nothingToResume(directory, `its ${runFiles.fork} cannot be read`)
}

/** What is to be forked must be what the run that is there is a fork of. */
async function checkIsFork(directory: string, of: string | undefined, fork: string): Promise<void> {
  const wanted = await resolveFolder(fork)
  const from = of === undefined ? undefined : await resolveFolder(of)
  if (from !== undefined && [from, dirname(dirname(from))].includes(wanted)) return
  const what = of === undefined ? "no fork" : `a fork of ${of}`
  throw new GigpoError(
    "RUN_EXISTS",
    `The run in ${directory} is ${what}, and --fork names ${fork}. Leave --fork out to go on with it, or choose another folder for the fork.`,
  )
}

function forkFrom(checkpoint: Checkpoint): Pick<Start, "checkpoint" | "fork"> {
  const { directory: from } = checkpoint
  return {
    checkpoint,
    fork: { run: dirname(dirname(from)), text: `${JSON.stringify({ checkpoint: from })}\n` },
  }
}

/** A checkpoint that no other can stand for; where it is damaged the error names one that is intact. */
async function namedCheckpoint(path: string): Promise<Checkpoint> {
  try {
    return await verifyCheckpoint(path)
  } catch (cause) {
    const intact = GigpoError.is(cause) && cause.code === "RUN_CORRUPT" ? await intactCheckpoint(path) : undefined
    if (intact === undefined) throw cause
    const message = `${(cause as Error).message} The checkpoint ${intact} of the same run is intact: take that.`
    throw new GigpoError("RUN_CORRUPT", message, { cause })
  }
}

/** The checkpoint at `path`, or the newest of the run there. */
async function findFork(path: string, onWarning: StartOptions["onWarning"]): Promise<Checkpoint> {
  const isCheckpoint = async () => isCheckpointName(path) || (await isThere(join(path, checkpointManifest)))
  const isRun = (await folderState(path)) === "run"
  if (!isRun && !((await isThere(path)) && (await isCheckpoint()))) {
    await refuseBrokenRun(path)
    throw new GigpoError(
      "RUN_MISSING",
      `There is nothing in ${path} to fork: give a run's folder, or one of its checkpoints.`,
    )
  }
  if (!isRun) return await namedCheckpoint(path)
  const checkpoint = await findCheckpoint(join(path, runFiles.checkpoints), onWarning)
  if (checkpoint) return checkpoint

  const damaged = await hasCheckpoints(join(path, runFiles.checkpoints))
  throw new GigpoError(
    damaged ? "RUN_CORRUPT" : "RUN_MISSING",
    `The run in ${path} cannot be forked: it has no ${damaged ? "whole checkpoint" : "checkpoint yet"}.`,
  )
}

function nothingToResume(directory: string, why: string): GigpoError {
  return new GigpoError(
    "RUN_CORRUPT",
    `The run in ${directory} cannot be resumed: ${why}. Start it again (--overwrite) or in another folder.`,
  )
}
