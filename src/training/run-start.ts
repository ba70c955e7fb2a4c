import { readFile } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { GigpoError } from "../errors.ts"
import { isThere } from "../files/io-error.ts"
import { type Checkpoint, findCheckpoint, hasCheckpoints, verifyCheckpoint } from "./checkpoint.ts"
import {
  changeableKeys,
  checkSameConfig,
  formatRunConfig,
  type RunConfig,
  readRunConfig,
  type SettledRates,
  settledIn,
} from "./run-config.ts"
import { runFiles } from "./run-files.ts"
import { folderState, type RunMode } from "./run-folder.ts"

/** What a run begins as. */
export interface Start {
  readonly kind: "new" | "replace" | "resume"
  /** Of config.json. */
  readonly text: string
  /** Where weights and all that has a memory come from. */
  readonly checkpoint?: Checkpoint | undefined
  readonly fork?: Fork | undefined
  /** What the run that goes on chose when it began. */
  readonly settled?: SettledRates
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
  const checkpoint = await findFork(resolve(fork), onWarning)
  const { directory: from } = checkpoint
  return {
    kind,
    text,
    checkpoint,
    fork: { run: dirname(dirname(from)), text: `${JSON.stringify({ checkpoint: from })}\n` },
  }
}

/** Without a checkpoint where the run was stopped before its first: it begins again. */
async function findResumable(
  directory: string,
  config: object,
  { mayChange = changeableKeys, complete, onWarning }: StartOptions,
): Promise<Pick<Start, "checkpoint" | "settled">> {
  const old = await readRunConfig(join(directory, runFiles.config))
  if (!old) throw nothingToResume(directory, "its config.json cannot be read")
  checkSameConfig(directory, complete?.(old) ?? old, config, mayChange)
  const settled = settledIn(old)
  const checkpoints = join(directory, runFiles.checkpoints)
  const checkpoint = await findCheckpoint(checkpoints, onWarning)
  if (checkpoint) return { checkpoint, settled }
  if (await hasCheckpoints(checkpoints)) throw nothingToResume(directory, "it has no whole checkpoint")
  const forked = await readFile(join(directory, runFiles.fork), "utf8").catch(() => undefined)
  return { settled, ...(forked !== undefined && { checkpoint: await verifyCheckpoint(JSON.parse(forked).checkpoint) }) }
}

/** The checkpoint at `path`, or the newest of the run there. */
async function findFork(path: string, onWarning: StartOptions["onWarning"]): Promise<Checkpoint> {
  if (!(await isThere(path)))
    throw new GigpoError(
      "RUN_CORRUPT",
      `There is nothing in ${path} to fork: give a run's folder, or one of its checkpoints.`,
    )
  if ((await folderState(path)) !== "run") return await verifyCheckpoint(path)
  const checkpoint = await findCheckpoint(join(path, runFiles.checkpoints), onWarning)
  if (checkpoint) return checkpoint
  throw new GigpoError("RUN_CORRUPT", `The run in ${path} cannot be forked: it has no whole checkpoint.`)
}

function nothingToResume(directory: string, why: string): GigpoError {
  return new GigpoError(
    "RUN_CORRUPT",
    `The run in ${directory} cannot be resumed: ${why}. Start it again (--overwrite) or in another folder.`,
  )
}
