import { type FileHandle, mkdir, open, readdir, readFile, realpath, stat, writeFile } from "node:fs/promises"
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import { GigpoError } from "../errors.ts"
import { writeDirectory } from "../files/atomic-directory.ts"
import { replaceFile } from "../files/atomic-file.ts"
import { io, ioError, isSystemError } from "../files/io-error.ts"
import { acquireLock, type Lock, newLock, releaseLock } from "../files/lock.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import {
  type Checkpoint,
  checkParts,
  findCheckpoint,
  pruneCheckpoints,
  restoreCheckpoint,
  type Saved,
  setCheckpointsAside,
  verifyCheckpoint,
  writeCheckpoint,
} from "./checkpoint.ts"
import { cutBack, linesUpTo } from "./metrics-log.ts"
import type { IterationReport } from "./options.ts"
import { changeableKeys, checkSameConfig, formatRunConfig, type RunConfig, readRunConfig } from "./run-config.ts"

export interface RunMode {
  /** Go on from the newest whole checkpoint of the run that is there. Default false. */
  readonly resume?: boolean | undefined
  /** Replace the run that is there. Default false. */
  readonly overwrite?: boolean | undefined
  /**
   * Begin with the state of another run: its folder, or one of its checkpoints. What was logged up to there comes along; the
   * configuration may be another, and so may estimator, loss, hooks and tasks, which then begin anew. The model must be of the
   * same shape.
   */
  readonly fork?: string | undefined
}

export interface RunOptions extends RunMode {
  /** Dotted keys of `config` that a resumed run may change, with all that stands below them. Default `changeableKeys`. */
  readonly mayChange?: readonly string[]
  /** Fills in what the config.json of an older version does not say, before it is compared. */
  readonly complete?: ((config: RunConfig) => object) | undefined
  /** Told what is odd but no reason to stop. Default: `process.emitWarning`. */
  readonly onWarning?: (message: string) => void
}

const optionKeys: KeysOf<RunOptions> = {
  resume: true,
  overwrite: true,
  fork: true,
  mayChange: true,
  complete: true,
  onWarning: true,
}

const files = { config: "config.json", metrics: "metrics.jsonl", lock: "run.lock", checkpoints: "checkpoints" } as const

/**
 * The folder of one training run: config.json, metrics.jsonl with one line an iteration, checkpoints/step-N and at the end
 * the model. One process works in it at a time. A process killed at any moment leaves a folder that can be resumed from its
 * last checkpoint.
 */
export class Run {
  readonly directory: string
  readonly #start: Start
  readonly #onWarning: Told["onWarning"]
  #lock: Lock | undefined
  #metrics: FileHandle | undefined
  #length = 0
  #checkpoint: Checkpoint | undefined
  #beginning: Promise<void> | undefined
  #open = true

  /**
   * Takes a new or empty folder for a run, or opens a run that is there. `config` says all that determines the run; it is kept as
   * JSON. Nothing is written or replaced before `begin`, which training calls once all else has been checked.
   *
   * @throws GigpoError `RUN_EXISTS` where a run is there and neither option is given, or where anything else is there;
   * `RUN_LOCKED` where another process works in it; `RUN_CORRUPT` where there is nothing to resume or to fork; `BAD_CONFIG` where
   * it was started with another configuration. Nothing has been changed then.
   */
  static async open(directory: string, config: object, options: RunOptions = {}): Promise<Run> {
    if (typeof directory !== "string" || directory === "")
      throw new GigpoError("BAD_ARGUMENT", "Run.open needs the path of the run's folder.")
    checkArguments("Run.open: the configuration", config)
    checkArguments("Run.open", options, optionKeys)
    // A link is followed: what is renamed must lie where the run does.
    const path = await realpath(directory).catch(() => resolve(directory))
    const state = await checkRunFolder(path, options)
    const lock = state === "run" ? await acquireLock(join(path, files.lock)) : undefined
    try {
      const { onWarning = (message) => process.emitWarning(message) } = options
      const text = formatRunConfig(config)
      if (options.resume) {
        const checkpoint = await findResumable(path, config, { ...options, onWarning })
        return new Run(path, { kind: "resume", text }, lock, checkpoint, onWarning)
      }
      const fork = options.fork === undefined ? undefined : await findFork(resolve(options.fork), onWarning)
      return new Run(path, { kind: state === "run" ? "replace" : "new", text, fork }, lock, fork, onWarning)
    } catch (error) {
      if (lock) await releaseLock(lock).catch(() => {})
      throw error
    }
  }

  private constructor(
    directory: string,
    start: Start,
    lock: Lock | undefined,
    checkpoint: Checkpoint | undefined,
    onWarning: Told["onWarning"],
  ) {
    this.directory = directory
    this.#start = start
    this.#lock = lock
    this.#checkpoint = checkpoint
    this.#onWarning = onWarning
  }

  /** What config.json says. */
  get config(): RunConfig {
    return JSON.parse(this.#start.text)
  }

  /** The newest checkpoint, or the one that was forked; undefined before the first. */
  get checkpoint(): Checkpoint | undefined {
    return this.#checkpoint
  }

  /** Completed iterations that a checkpoint holds. */
  get iteration(): number {
    return this.#checkpoint?.iteration ?? 0
  }

  /** Whether the checkpoint lies in this run's folder. */
  get saved(): boolean {
    return this.#checkpoint !== undefined && dirname(dirname(this.#checkpoint.directory)) === this.directory
  }

  /** Whether the folder has been made, replaced or gone on with. */
  get begun(): boolean {
    return this.#beginning !== undefined
  }

  /** Makes or replaces the folder, or cuts the log back to the checkpoint. Writing anything begins, too. */
  begin(): Promise<void> {
    if (!this.#open)
      return Promise.reject(new GigpoError("DISPOSED", `The run in ${this.directory} was closed; open it again.`))
    this.#beginning ??= this.#begin()
    return this.#beginning
  }

  async #begin(): Promise<void> {
    const { directory } = this
    const { kind, text, fork } = this.#start
    if (kind === "resume") {
      const path = join(directory, files.config)
      this.#length = await cutBack(join(directory, files.metrics), this.iteration)
      if (text !== (await readFile(path, "utf8"))) await replaceFile(path, text)
    } else {
      // The lock is written inside the new folder, so that it stands from the moment the folder does.
      const lock = this.#lock ?? newLock(join(directory, files.lock))
      const logged = fork ? await linesUpTo(join(dirname(dirname(fork.directory)), files.metrics), fork.iteration) : ""
      const fill = async (temporary: string): Promise<void> => {
        await mkdir(join(temporary, files.checkpoints))
        await writeFile(join(temporary, files.config), text)
        await writeFile(join(temporary, files.metrics), logged)
        await writeFile(join(temporary, files.lock), lock.text)
      }
      await writeDirectory(directory, fill, { overwrite: kind === "replace" })
      this.#lock = lock
      this.#length = Buffer.byteLength(logged)
    }
    const metrics = join(directory, files.metrics)
    this.#metrics = await io("open", metrics, open(metrics, "r+"))
  }

  /** Adds one line to metrics.jsonl and waits until it is on the disk. */
  async log(report: IterationReport): Promise<void> {
    await this.begin()
    const line = Buffer.from(`${JSON.stringify(report)}\n`)
    const path = join(this.directory, files.metrics)
    // At an explicit place: what a failed write left is written over by the next.
    for (let done = 0; done < line.length; ) {
      const writing = this.#metrics!.write(line, done, line.length - done, this.#length + done)
      done += (await io("write", path, writing)).bytesWritten
    }
    await io("flush", path, this.#metrics!.sync())
    this.#length += line.length
  }

  /** Writes checkpoints/step-`iteration` and then removes all but the `keep` newest checkpoints, and `spare`. */
  async saveCheckpoint(iteration: number, saved: Saved, keep: number, spare?: Checkpoint): Promise<Checkpoint> {
    await this.begin()
    const parent = join(this.directory, files.checkpoints)
    this.#checkpoint = await writeCheckpoint(parent, iteration, saved)
    await pruneCheckpoints(parent, iteration, keep, spare?.iteration)
    return this.#checkpoint
  }

  /** Makes an earlier checkpoint, or none, the newest again; those after it stay as checkpoints/suspect-N. */
  async goBackTo(good: Checkpoint | undefined): Promise<void> {
    await setCheckpointsAside(join(this.directory, files.checkpoints), good?.iteration ?? 0)
    this.#checkpoint = good
  }

  /** Writes the final model in Hugging Face layout, whole or not at all; returns its folder. */
  async saveModel({ store, files: copied = [] }: Pick<Saved, "store" | "files">): Promise<string> {
    await this.begin()
    const model = join(this.directory, "model")
    await writeDirectory(model, (temporary) => store.save(temporary, { files: copied }), { overwrite: true })
    return model
  }

  /** Refuses (`BAD_CONFIG`) to resume with another estimator, loss, hooks or tasks than the checkpoint is of; touches nothing. */
  check({ parts = {} }: Pick<Saved, "parts">): void {
    if (this.#start.kind === "resume") checkParts(this.#checkpoint!, parts)
  }

  /**
   * Puts the policy and all that has a memory back to the checkpoint; does nothing in a new run. A fork may have other parts than
   * the run that it is of: these begin anew, with a warning.
   */
  async restore(saved: Saved): Promise<void> {
    this.check(saved)
    if (!this.#checkpoint) return
    for (const odd of await restoreCheckpoint(this.#checkpoint, saved)) this.#onWarning(odd)
  }

  /** Lets another process work in the folder. */
  async close(): Promise<void> {
    if (!this.#open) return
    this.#open = false
    await this.#beginning?.catch(() => {})
    await this.#metrics?.close()
    if (this.#lock) await releaseLock(this.#lock)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/** What `begin` is to do. */
interface Start {
  readonly kind: "new" | "replace" | "resume"
  /** Of config.json. */
  readonly text: string
  readonly fork?: Checkpoint | undefined
}

async function findResumable(directory: string, config: object, options: RunOptions & Told): Promise<Checkpoint> {
  const { mayChange = changeableKeys, onWarning } = options
  const old = await readRunConfig(join(directory, files.config))
  if (!old) throw nothingToResume(directory, "its config.json cannot be read")
  checkSameConfig(directory, options.complete?.(old) ?? old, config, mayChange)
  const checkpoint = await findCheckpoint(join(directory, files.checkpoints), onWarning)
  if (!checkpoint) throw nothingToResume(directory, "it has no whole checkpoint")
  return checkpoint
}

interface Told {
  readonly onWarning: (message: string) => void
}

/** The checkpoint at `path`, or the newest of the run there. */
async function findFork(path: string, onWarning: Told["onWarning"]): Promise<Checkpoint> {
  if ((await folderState(path)) !== "run") return await verifyCheckpoint(path)
  const checkpoint = await findCheckpoint(join(path, files.checkpoints), onWarning)
  if (checkpoint) return checkpoint
  throw new GigpoError("RUN_CORRUPT", `The run in ${path} cannot be forked: it has no whole checkpoint.`)
}

/**
 * Refuses what `Run.open` would refuse for what stands at `directory`, without touching it: to be asked before a model is
 * loaded. Returns what is there.
 */
export async function checkRunFolder(directory: string, mode: RunMode): Promise<"nothing" | "run"> {
  const path = resolve(directory)
  const { resume = false, overwrite = false, fork } = mode
  if (resume && overwrite)
    throw new GigpoError("BAD_ARGUMENT", "A run cannot be resumed and overwritten at once; choose one.")
  if (resume && fork !== undefined)
    throw new GigpoError("BAD_ARGUMENT", "A run cannot be resumed and forked at once: a fork begins a run of its own.")
  if (fork !== undefined && lies(resolve(fork), path))
    throw new GigpoError("BAD_ARGUMENT", `${fork} lies in the run folder ${directory}; fork it into another folder.`)
  const state = await folderState(path)
  if (state === "other") {
    throw new GigpoError(
      "RUN_EXISTS",
      `${path} is there but is no run folder of gigpo (config.json and metrics.jsonl), so it is left alone. ` +
        "Choose another folder for the run.",
    )
  }
  if (state === "nothing" && resume)
    throw new GigpoError("RUN_CORRUPT", `There is no run in ${path} to resume. Start it without --resume.`)
  if (state === "run" && !resume && !overwrite) {
    throw new GigpoError(
      "RUN_EXISTS",
      `There is a run in ${path} already. Go on with it (--resume), replace it (--overwrite), or choose another folder.`,
    )
  }
  return state
}

async function folderState(path: string): Promise<"nothing" | "run" | "other"> {
  try {
    const entries = await readdir(path)
    if (entries.length === 0) return "nothing"
    const isFile = async (name: string) => entries.includes(name) && (await stat(join(path, name))).isFile()
    return (await isFile(files.metrics)) && (await readRunConfig(join(path, files.config))) ? "run" : "other"
  } catch (cause) {
    if (isSystemError(cause) && cause.code === "ENOENT") return "nothing"
    if (isSystemError(cause) && cause.code === "ENOTDIR") return "other"
    throw ioError("read", path, cause)
  }
}

function lies(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

function nothingToResume(directory: string, why: string): GigpoError {
  return new GigpoError(
    "RUN_CORRUPT",
    `The run in ${directory} cannot be resumed: ${why}. Start it again (--overwrite) or in another folder.`,
  )
}
