import { type FileHandle, mkdir, open, readdir, readFile, stat, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { GigpoError } from "../errors.ts"
import { writeDirectory } from "../files/atomic-directory.ts"
import { replaceFile } from "../files/atomic-file.ts"
import { io, ioError, isSystemError } from "../files/io-error.ts"
import { acquireLock, type Lock, newLock, releaseLock } from "../files/lock.ts"
import {
  type Checkpoint,
  findCheckpoint,
  pruneCheckpoints,
  restoreCheckpoint,
  type SavedPolicy,
  writeCheckpoint,
} from "./checkpoint.ts"
import { cutBack } from "./metrics-log.ts"
import type { IterationReport } from "./options.ts"
import { changeableKeys, checkSameConfig, formatRunConfig, readRunConfig } from "./run-config.ts"

export interface RunMode {
  /** Go on from the newest whole checkpoint of the run that is there. Default false. */
  readonly resume?: boolean
  /** Replace the run that is there. Default false. */
  readonly overwrite?: boolean
}

export interface RunOptions extends RunMode {
  /** Dotted keys of `config` that a resumed run may change, with all that stands below them. Default `changeableKeys`. */
  readonly mayChange?: readonly string[]
  /** Told what is odd but no reason to stop. Default: `process.emitWarning`. */
  readonly onWarning?: (message: string) => void
}

const files = { config: "config.json", metrics: "metrics.jsonl", lock: "run.lock", checkpoints: "checkpoints" } as const

/**
 * The folder of one training run: config.json, metrics.jsonl with one line an iteration, checkpoints/step-N and at the end
 * the model. One process works in it at a time. A process killed at any moment leaves a folder that can be resumed from its
 * last checkpoint.
 */
export class Run {
  readonly directory: string
  readonly #lock: Lock
  readonly #metrics: FileHandle
  #length: number
  #checkpoint: Checkpoint | undefined
  #open = true

  /**
   * Starts a run in a new or empty folder, or opens one that is there. `config` says all that determines the run; it is
   * kept as JSON.
   *
   * @throws GigpoError `RUN_EXISTS` where a run is there and neither option is given, or where anything else is there;
   * `RUN_LOCKED` where another process works in it; `RUN_CORRUPT` where there is nothing to resume; `BAD_CONFIG` where it
   * was started with another configuration. Nothing has been changed then.
   */
  static async open(directory: string, config: object, options: RunOptions = {}): Promise<Run> {
    const path = resolve(directory)
    const state = await checkRunFolder(path, options)
    return options.resume ? await Run.#resume(path, config, options) : await Run.#start(path, config, state === "run")
  }

  static async #start(directory: string, config: object, overwrite: boolean): Promise<Run> {
    // The lock is written inside the new folder, so that it stands from the moment the folder does.
    const old = overwrite ? await acquireLock(join(directory, files.lock)) : undefined
    const lock = old ?? newLock(join(directory, files.lock))
    const fill = async (temporary: string): Promise<void> => {
      await mkdir(join(temporary, files.checkpoints))
      await writeFile(join(temporary, files.config), formatRunConfig(config))
      await writeFile(join(temporary, files.metrics), "")
      await writeFile(join(temporary, files.lock), lock.text)
    }
    return await Run.#holding(lock, async () => {
      await writeDirectory(directory, fill, { overwrite })
      return await Run.#opened(directory, lock, 0, undefined)
    })
  }

  static async #resume(directory: string, config: object, options: RunOptions): Promise<Run> {
    const { mayChange = changeableKeys, onWarning = (message) => process.emitWarning(message) } = options
    const lock = await acquireLock(join(directory, files.lock))
    return await Run.#holding(lock, async () => {
      const path = join(directory, files.config)
      const old = await readRunConfig(path)
      if (!old) throw nothingToResume(directory, "its config.json cannot be read")
      checkSameConfig(directory, old, config, mayChange)
      const checkpoint = await findCheckpoint(join(directory, files.checkpoints), onWarning)
      if (!checkpoint) throw nothingToResume(directory, "it has no whole checkpoint")
      const length = await cutBack(join(directory, files.metrics), checkpoint.iteration)
      const text = formatRunConfig(config)
      if (text !== (await readFile(path, "utf8"))) await replaceFile(path, text)
      return await Run.#opened(directory, lock, length, checkpoint)
    })
  }

  /** Gives the lock back when `work` fails. */
  static async #holding(lock: Lock, work: () => Promise<Run>): Promise<Run> {
    try {
      return await work()
    } catch (error) {
      await releaseLock(lock).catch(() => {})
      throw error
    }
  }

  static async #opened(directory: string, lock: Lock, length: number, checkpoint?: Checkpoint): Promise<Run> {
    const metrics = join(directory, files.metrics)
    return new Run(directory, lock, await io("open", metrics, open(metrics, "r+")), length, checkpoint)
  }

  private constructor(directory: string, lock: Lock, metrics: FileHandle, length: number, checkpoint?: Checkpoint) {
    this.directory = directory
    this.#lock = lock
    this.#metrics = metrics
    this.#length = length
    this.#checkpoint = checkpoint
  }

  /** The newest checkpoint; undefined before the first. */
  get checkpoint(): Checkpoint | undefined {
    return this.#checkpoint
  }

  /** Completed iterations that a checkpoint holds. */
  get iteration(): number {
    return this.#checkpoint?.iteration ?? 0
  }

  /** Adds one line to metrics.jsonl and waits until it is on the disk. */
  async log(report: IterationReport): Promise<void> {
    this.#check()
    const line = Buffer.from(`${JSON.stringify(report)}\n`)
    const path = join(this.directory, files.metrics)
    // At an explicit place: what a failed write left is written over by the next.
    for (let done = 0; done < line.length; ) {
      const writing = this.#metrics.write(line, done, line.length - done, this.#length + done)
      done += (await io("write", path, writing)).bytesWritten
    }
    await io("flush", path, this.#metrics.sync())
    this.#length += line.length
  }

  /**
   * Writes checkpoints/step-`iteration` and then removes all but the `keep` newest checkpoints.
   *
   * @param copied - files to put beside the weights (the tokenizer's).
   */
  async saveCheckpoint(
    iteration: number,
    policy: SavedPolicy,
    copied: readonly string[],
    keep: number,
  ): Promise<Checkpoint> {
    this.#check()
    const parent = join(this.directory, files.checkpoints)
    this.#checkpoint = await writeCheckpoint(parent, iteration, policy, copied)
    await pruneCheckpoints(parent, iteration, keep)
    return this.#checkpoint
  }

  /** Writes the final model in Hugging Face layout, whole or not at all; returns its folder. */
  async saveModel(policy: Pick<SavedPolicy, "save">, copied: readonly string[]): Promise<string> {
    this.#check()
    const model = join(this.directory, "model")
    await writeDirectory(model, (temporary) => policy.save(temporary, { files: copied }), { overwrite: true })
    return model
  }

  /** Puts the policy and its optimizer back to the checkpoint that was resumed; does nothing in a new run. */
  async restore(policy: SavedPolicy): Promise<void> {
    if (this.checkpoint) await restoreCheckpoint(this.checkpoint, policy)
  }

  /** Lets another process work in the folder. */
  async close(): Promise<void> {
    if (!this.#open) return
    this.#open = false
    await this.#metrics.close()
    await releaseLock(this.#lock)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #check(): void {
    if (!this.#open) throw new GigpoError("DISPOSED", `The run in ${this.directory} was closed; open it again.`)
  }
}

/**
 * Refuses what `Run.open` would refuse for what stands at `directory`, without touching it: to be asked before a model is
 * loaded. Returns what is there.
 */
export async function checkRunFolder(directory: string, mode: RunMode): Promise<"nothing" | "run"> {
  const path = resolve(directory)
  const { resume = false, overwrite = false } = mode
  if (resume && overwrite)
    throw new GigpoError("BAD_ARGUMENT", "A run cannot be resumed and overwritten at once; choose one.")
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

function nothingToResume(directory: string, why: string): GigpoError {
  return new GigpoError(
    "RUN_CORRUPT",
    `The run in ${directory} cannot be resumed: ${why}. Start it again (--overwrite) or in another folder.`,
  )
}
