import { randomBytes } from "node:crypto"
import { type FileHandle, mkdir, rename, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { checkTarget, resolveFolder, writeDirectory } from "../files/atomic-directory.ts"
import { replaceFile } from "../files/atomic-file.ts"
import { checkWritable } from "../files/check-space.ts"
import { inside } from "../files/inside.ts"
import { io, isThere } from "../files/io-error.ts"
import { acquireLock, type Lock, newLock, releaseLock } from "../files/lock.ts"
import { readWritten } from "../files/manifest.ts"
import { openRegular, readIfThere } from "../files/regular-file.ts"
import { checkCopied } from "../model-files/copied-files.ts"
import { modelNames } from "../model-files/model-folder.ts"
import { checkArguments, checkPath, type KeysOf } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import { warner } from "../util/warn.ts"
import { type BestEvaluation, bestOf } from "./best.ts"
import {
  type Checkpoint,
  checkParts,
  checkpointPath,
  listCheckpoints,
  pruneCheckpoints,
  restoreCheckpoint,
  type Saved,
  setCheckpointsAside,
  writeCheckpoint,
} from "./checkpoint.ts"
import { changeableKeys, formatRunConfig, type ResolvedLearningRates, type RunConfig, readRunConfig } from "./config.ts"
import { runFiles as files } from "./files.ts"
import { checkRunFolder, type RunMode } from "./folder.ts"
import { goesOnWith, type Origin } from "./frozen-weights.ts"
import { cutBack, readReports, replaceLast } from "./metrics-log.ts"
import { type CallOptions, checkRecorded, checkStated } from "./options.ts"
import { discardReplaced, setRunAside, settleRun } from "./replaced.ts"
import type { IterationReport, UpdateReport } from "./report.ts"
import { checkSameEnvironment } from "./same-environment.ts"
import { checkSameTokenizer } from "./same-tokenizer.ts"
import { findStart, forkedLog, type Start } from "./start.ts"

export type { RunMode } from "./folder.ts"

/** Options of `Run.open`. */
export interface RunOptions extends RunMode {
  /**
   * Dotted keys of the configuration that a resumed run may change, including all keys below them. Default: `iterations`, `checkpointEvery`,
   * `keepCheckpoints`, `evaluation.every`, `guards`, `stop`, `observer`, `recording`, and concurrency, time limits and retries of `rollout`.
   */
  readonly changeable?: readonly string[]
  /** Adds missing keys to the config.json of an older version, before the comparison. */
  readonly complete?: ((config: RunConfig) => object) | undefined
  /** Called with warnings. Default: a warning of Node.js. */
  readonly onWarning?: (message: string) => void
}

interface CheckpointRoom {
  /** Maximum number of checkpoints on disk. Default 2: a new one is written before the old one is removed. */
  readonly room: number
}

/** Values that the options did not give, for config.json. */
export interface ResolvedValues {
  readonly settled: ResolvedLearningRates
  readonly promptDate: string | undefined
  /** Options of the training or fine-tuning, which must agree with the configuration. */
  readonly callOptions: CallOptions
}

const optionKeys: KeysOf<RunOptions> = {
  resume: true,
  overwrite: true,
  fork: true,
  changeable: true,
  complete: true,
  onWarning: true,
}

/**
 * Folder of one training run: config.json, metrics.jsonl with one line per iteration, checkpoints/iteration-N, and the trained model at the
 * end. A supervised fine-tuning counts updates instead of iterations: `update` in its log, checkpoints/update-N. Only one process can use the folder at a time. After a crash at any moment the run can be resumed from its last checkpoint.
 */
export class Run {
  /** Folder of the run. */
  readonly directory: string
  #start: Start
  readonly #given: object
  readonly #changeable: readonly string[]
  readonly #onWarning: (message: string) => void
  #lock: Lock | undefined
  #environment: string | undefined
  #metrics: FileHandle | undefined
  #length = 0
  #checkpoint: Checkpoint | undefined
  #beginning: Promise<void> | undefined
  /** Whether an older run is kept until this one has a checkpoint or a model. */
  #replaces = false
  #open = true

  /**
   * Opens a run in a new, empty or existing run folder. Nothing is written before `begin`, which `train` and `sft` call after their checks.
   *
   * @param directory - folder of the run.
   * @param config - configuration that determines the run; stored as JSON in config.json.
   * @throws GigpoError `RUN_EXISTS` for an existing run without `resume` or `overwrite`, or a folder with other files; `RUN_LOCKED` for a run
   * that another process uses; `RUN_MISSING` without a run to resume or fork; `RUN_CORRUPT` for a damaged run; `BAD_CONFIG` for a run with
   * another configuration. Nothing has been changed then.
   */
  static async open(directory: string, config: object, options: RunOptions = {}): Promise<Run> {
    checkPath("Run.open: the run's folder", directory)
    checkArguments("Run.open: the configuration", config)
    checkArguments("Run.open", options, optionKeys)
    const path = await resolveFolder(directory)
    const state = await checkRunFolder(path, options)
    const lock = state === "run" ? await acquireLock(join(path, files.lock)) : undefined
    try {
      const onWarning = warner(options.onWarning)
      if (lock && (await settleRun(path)))
        onWarning(
          `The run in ${path} was restored: the run that was started to replace it ended before its first checkpoint.`,
        )
      const start = await findStart(path, state, config, { ...options, onWarning })
      return new Run(path, config, start, lock, { ...options, onWarning })
    } catch (error) {
      if (lock) await releaseLock(lock).catch(() => {})
      throw error
    }
  }

  private constructor(
    directory: string,
    given: object,
    start: Start,
    lock: Lock | undefined,
    { onWarning, changeable = changeableKeys }: RunOptions & Required<Pick<RunOptions, "onWarning">>,
  ) {
    this.directory = directory
    this.#given = given
    this.#changeable = changeable
    this.#start = start
    this.#lock = lock
    this.#checkpoint = start.checkpoint
    this.#onWarning = onWarning
  }

  /** Content of config.json. */
  get config(): RunConfig {
    return JSON.parse(this.#start.text)
  }

  /** Returns the run that is resumed or forked; undefined for a new run. */
  async origin(): Promise<Origin | undefined> {
    const { kind, fork, fresh = false } = this.#start
    if (!fork && (kind !== "resume" || fresh)) return undefined
    const directory = fork ? fork.run : this.directory
    const config = await readRunConfig(join(directory, files.config))
    return config && { directory, config, forked: fork !== undefined }
  }

  /** Learning rates that a resumed run has recorded. */
  get learningRates(): ResolvedLearningRates {
    return this.#start.settled ?? {}
  }

  /** Newest checkpoint, or the checkpoint that was forked; undefined before the first. */
  get checkpoint(): Checkpoint | undefined {
    return this.#checkpoint
  }

  /** Whether an existing run is resumed. A run without a checkpoint restarts. */
  get resumed(): boolean {
    return this.#start.kind === "resume"
  }

  /** Number of completed iterations (in SFT: updates) in the newest checkpoint; 0 without a checkpoint. */
  get iteration(): number {
    return this.#checkpoint?.iteration ?? 0
  }

  /** Whether the newest checkpoint is in the folder of this run. */
  get saved(): boolean {
    return this.#checkpoint !== undefined && dirname(dirname(this.#checkpoint.directory)) === this.directory
  }

  /** Whether closing the run now would restore the run that it replaces. */
  get replaces(): boolean {
    return this.#replaces
  }

  /** Whether `begin` has been called. */
  get begun(): boolean {
    return this.#beginning !== undefined
  }

  /** Creates or replaces the folder, or truncates the log to the checkpoint. Methods that write call `begin` if necessary. */
  begin(): Promise<void> {
    if (!this.#open)
      return Promise.reject(
        new GigpoError("DISPOSED", `The run in ${this.directory} is closed; open it again with Run.open.`),
      )
    this.#beginning ??= this.#begin()
    return this.#beginning
  }

  async #begin(): Promise<void> {
    const { directory } = this

    const { kind, text, fork, fresh = false } = this.#start
    const metrics = join(directory, files.metrics)
    if (kind === "resume") {
      // Later checkpoints are damaged and were skipped. They are renamed, since new checkpoints will have their names.
      if (this.saved) await setCheckpointsAside(join(directory, files.checkpoints), this.iteration)
      const path = join(directory, files.config)
      // A restart with another configuration may start from other weights, so an evaluation before the first iteration is removed, too.
      this.#length = await cutBack(metrics, fresh && !fork ? -1 : this.iteration)
      if (text !== (await readIfThere(path))) await replaceFile(path, text)
    } else {
      const logged = fork ? await forkedLog(fork.run, this.#checkpoint!, this.#onWarning) : ""
      const written = { [files.config]: text, [files.metrics]: logged, ...(fork && { [files.fork]: fork.text }) }
      if (kind === "replace") await this.#replace(written)
      else await this.#make(written)
      this.#length = Buffer.byteLength(logged)
    }
    this.#metrics = await io("open", metrics, openRegular(metrics, "r+"))
  }

  async #make(written: Readonly<Record<string, string>>): Promise<void> {
    // The lock is written inside the temporary folder, so that it exists as soon as the folder does.
    const lock = newLock(join(this.directory, files.lock))
    const fill = async (temporary: string): Promise<void> => {
      await mkdir(join(temporary, files.checkpoints))
      for (const [name, text] of Object.entries(written)) await writeFile(join(temporary, name), text)
      await writeFile(join(temporary, files.lock), lock.text)
    }
    try {
      await writeDirectory(this.directory, fill, { manifest: "none" })
    } catch (cause) {
      throw GigpoError.is(cause) && cause.code === "FILE_EXISTS" ? begunMeanwhile(this.directory) : cause
    }
    this.#lock = lock
  }

  async #replace(written: Readonly<Record<string, string>>): Promise<void> {
    await setRunAside(this.directory)
    this.#replaces = true
    const checkpoints = await inside(this.directory, files.checkpoints)
    await io("create", checkpoints, mkdir(checkpoints, { recursive: true }))
    for (const [name, text] of Object.entries(written)) await replaceFile(join(this.directory, name), text)
  }

  /** Removes the replaced run, since this one has a checkpoint or a model. */
  async #keep(): Promise<void> {
    if (this.#replaces) await discardReplaced(this.directory)
    this.#replaces = false
  }

  /** Adds a line to metrics.jsonl and waits until the line is on disk. */
  async log(report: IterationReport | UpdateReport): Promise<void> {
    await this.begin()
    const line = Buffer.from(`${JSON.stringify(report)}\n`)
    const path = join(this.directory, files.metrics)
    // At an explicit position, so that the next write overwrites the remains of a failed one.
    for (let done = 0; done < line.length; ) {
      const writing = this.#metrics!.write(line, done, line.length - done, this.#length + done)
      done += (await io("write", path, writing)).bytesWritten
    }
    await io("flush", path, this.#metrics!.sync())
    this.#length += line.length
  }

  /** Replaces the last line, which is of the same iteration, by a report with an evaluation that was missing. */
  async replaceLast(report: IterationReport): Promise<void> {
    await this.begin()
    const path = join(this.directory, files.metrics)
    await this.#metrics!.close()
    try {
      this.#length = await replaceLast(path, report)
    } finally {
      this.#metrics = await io("open", path, openRegular(path, "r+"))
    }
  }

  /** Reads the reports of metrics.jsonl. */
  async reports(): Promise<readonly IterationReport[]> {
    return await readReports(join(this.directory, files.metrics))
  }

  /**
   * Returns the best evaluation whose weights still exist: in a checkpoint, or as the initial model.
   *
   * @param pending - iteration whose checkpoint will be written; it counts, too.
   */
  async best(pending?: number): Promise<BestEvaluation | undefined> {
    const parent = join(this.directory, files.checkpoints)
    const there = new Set([0, pending, ...(await listCheckpoints(parent))])
    const best = bestOf((await this.reports()).filter(({ iteration }) => there.has(iteration)))
    return best && best.iteration > 0 ? { ...best, directory: checkpointPath(parent, best.iteration) } : best
  }

  /** Writes checkpoints/iteration-`iteration` (in SFT: update-`iteration`), then removes all but the `keep` newest checkpoints, that of the best evaluation, and `spare`. */
  async saveCheckpoint(iteration: number, saved: Saved, keep: number, spare?: Checkpoint): Promise<Checkpoint> {
    await this.begin()
    const parent = join(this.directory, files.checkpoints)
    this.#checkpoint = await writeCheckpoint(parent, iteration, saved)
    await this.#keep()
    await pruneCheckpoints(parent, iteration, keep, [spare?.iteration, (await this.best())?.iteration])
    return this.#checkpoint
  }

  /** Goes back to an earlier checkpoint, or to none. Later checkpoints are renamed to checkpoints/suspect-N. */
  async rollBackTo(good: Checkpoint | undefined): Promise<void> {
    await setCheckpointsAside(join(this.directory, files.checkpoints), good?.iteration ?? 0)
    this.#checkpoint = good
  }

  /** Writes the final model in Hugging Face layout, atomically, and replaces an earlier one. Returns the folder of the model. */
  async saveModel({ store, files: copied = [] }: Pick<Saved, "store" | "files">): Promise<string> {
    await this.begin()
    await inside(this.directory, files.model)
    const fill = async (temporary: string) => {
      await store.save(temporary, { files: copied })
      return { made: "train", iteration: this.iteration, environment: this.#environment }
    }
    if (await this.#isOlderModel())
      await io("rename", this.#model, rename(this.#model, `${this.#model}-${randomBytes(3).toString("hex")}`))
    await writeDirectory(this.#model, fill, { overwrite: true })
    await this.#keep()
    return this.#model
  }

  get #model(): string {
    return join(this.directory, files.model)
  }

  /** Whether the model was written by gigpo 0.1, without a manifest. */
  async #isOlderModel(): Promise<boolean> {
    const names = ["config.json", "model.safetensors", "tokenizer.json"].map((name) => join(this.#model, name))
    const there = await Promise.all(names.map(isThere))
    return there.every(Boolean) && (await readWritten(this.#model)) === undefined
  }

  /**
   * Checks in advance what would fail later. Changes nothing on disk.
   *
   * @throws GigpoError `BAD_CONFIG` for options that differ from those of the run, or a tokenizer, environment, estimator, loss, hooks or tasks
   * that differ from those of the checkpoint; `BAD_MODEL` for frozen weights that differ from those at the start of the run; `FILE_EXISTS`
   * for files of others in the folder of the final model; `IO` for a disk that cannot be written or has too little space.
   */
  async check(saved: Partial<Saved & CheckpointRoom & ResolvedValues>): Promise<void> {
    const { parts, files: copied, frozen, settled = {}, promptDate, callOptions, store, critic, room = 2 } = saved
    const { kind, text } = this.#start
    const resolved = callOptions && checkStated(this.directory, this.#given, callOptions)
    this.#checkParts(parts)
    if (this.#goesOn) {
      checkSameEnvironment(this.#checkpoint!, saved)
      await checkSameTokenizer(this.#checkpoint!.directory, copied)
    }
    const origin = await this.origin()
    if (origin && !origin.forked && callOptions)
      checkRecorded(this.directory, origin.config, resolved!, callOptions, this.#changeable)
    const frozenWeights = goesOnWith(frozen, origin, this.#onWarning)
    const chosen = Object.keys(settled).length > 0
    const recorded = resolved && Object.keys(resolved).length > 0
    const all = {
      ...JSON.parse(text),
      ...(frozenWeights && { frozen: frozenWeights }),
      ...(chosen && { settled }),
      ...(recorded && { resolved }),
      promptDate,
    }
    this.#start = { ...this.#start, text: formatRunConfig(all) }
    await inside(this.directory, files.model)
    await checkCopied(copied)
    if (!(await this.#isOlderModel())) await checkTarget(this.#model, { overwrite: true, names: modelNames(copied) })
    const there = kind === "resume" ? (await listCheckpoints(join(this.directory, files.checkpoints))).length : 0
    const checkpoints = Math.max(room - there, 1) * (critic ? 2 : 1)
    await checkWritable(this.directory, store?.bytes && checkpoints * store.bytes.checkpoint + store.bytes.model)
    this.#environment = saved.environment
  }

  /** Checks that a resumed run has the parts of its checkpoint. A fork may have others. */
  #checkParts(parts: Saved["parts"] = {}): void {
    if (this.#goesOn) checkParts(this.#checkpoint!, parts)
  }

  /** Whether a checkpoint of this run is resumed. */
  get #goesOn(): boolean {
    return this.#start.kind === "resume" && this.saved
  }

  /**
   * Restores the policy and all parts with a state from the checkpoint. Does nothing in a new run. Parts of a fork that differ from those of
   * the original run start without a saved state, with a warning.
   */
  async restore(saved: Saved): Promise<void> {
    this.#checkParts(saved.parts)
    if (!this.#checkpoint) return
    for (const odd of await restoreCheckpoint(this.#checkpoint, saved)) this.#onWarning(odd)
  }

  /** Closes the run and releases its lock. */
  async close(): Promise<void> {
    if (!this.#open) return
    this.#open = false
    await this.#beginning?.catch(() => {})
    await this.#metrics?.close()
    try {
      if (this.#replaces) await settleRun(this.directory)
    } finally {
      if (this.#lock) await releaseLock(this.#lock)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/** Error for a folder that another process created after the checks. */
function begunMeanwhile(directory: string): GigpoError {
  return new GigpoError(
    "RUN_LOCKED",
    `Another process started a run in ${directory} at the same time. Wait for it or stop it, then resume the run; or choose another folder.`,
  )
}

/** Name of a training run or fine-tuning, for messages. */
export function nameOf(call: string, { run }: { readonly run?: Run | undefined }): string {
  return run ? `${call} with the run in ${run.directory}` : `${call} without a run`
}
