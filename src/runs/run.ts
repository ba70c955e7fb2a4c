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
import { type AskedOptions, checkRecorded, checkStated } from "./options.ts"
import { discardReplaced, setRunAside, settleRun } from "./replaced.ts"
import type { IterationReport } from "./report.ts"
import { checkSameEnvironment } from "./same-environment.ts"
import { checkSameTokenizer } from "./same-tokenizer.ts"
import { findStart, forkedLog, type Start } from "./start.ts"

export type { RunMode } from "./folder.ts"

/** Options of `Run`. */
export interface RunOptions extends RunMode {
  /** Dotted keys of `config` that a resumed run may change, with all that stands below them. Default `changeableKeys`. */
  readonly mayChange?: readonly string[]
  /** Fills in what the config.json of an older version does not say, before it is compared. */
  readonly complete?: ((config: RunConfig) => object) | undefined
  /** Told what is odd but no reason to stop. Default: a warning of Node.js. */
  readonly onWarning?: (message: string) => void
}

interface Room {
  /** Most checkpoints that there are at once. Default 2: one is written beside the one before. */
  readonly room: number
}

/** What was chosen where the options leave it open; config.json keeps it. */
export interface Chosen {
  readonly settled: ResolvedLearningRates
  readonly promptDate: string | undefined
  /** What the work in it was given; must be what the configuration states. */
  readonly asked: AskedOptions
}

const optionKeys: KeysOf<RunOptions> = {
  resume: true,
  overwrite: true,
  fork: true,
  mayChange: true,
  complete: true,
  onWarning: true,
}

/**
 * The folder of one training run: config.json, metrics.jsonl with one line an iteration, checkpoints/step-N and at the end
 * the model. One process works in it at a time. A process killed at any moment leaves a folder that can be resumed from its
 * last checkpoint.
 */
export class Run {
  readonly directory: string
  #start: Start
  readonly #given: object
  readonly #mayChange: readonly string[]
  readonly #onWarning: (message: string) => void
  #lock: Lock | undefined
  #environment: string | undefined
  #metrics: FileHandle | undefined
  #length = 0
  #checkpoint: Checkpoint | undefined
  #beginning: Promise<void> | undefined
  /** Whether an older run is kept aside until this one has something to keep. */
  #replaces = false
  #open = true

  /**
   * Takes a new or empty folder for a run, or opens a run that is there. `config` says all that determines the run; it is kept as
   * JSON. Nothing is written or replaced before `begin`, which training calls once all else has been checked.
   *
   * @throws GigpoError `RUN_EXISTS` where a run is there and neither option is given, or where anything else is there;
   * `RUN_LOCKED` where another process works in it; `RUN_MISSING` where there is nothing to resume or to fork, `RUN_CORRUPT` where that is damaged; `BAD_CONFIG` where
   * it was started with another configuration. Nothing has been changed then.
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
          `The run in ${path} is the one that was there before another began to replace it: that had saved nothing.`,
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
    { onWarning, mayChange = changeableKeys }: RunOptions & Required<Pick<RunOptions, "onWarning">>,
  ) {
    this.directory = directory
    this.#given = given
    this.#mayChange = mayChange
    this.#start = start
    this.#lock = lock
    this.#checkpoint = start.checkpoint
    this.#onWarning = onWarning
  }

  /** What config.json says. */
  get config(): RunConfig {
    return JSON.parse(this.#start.text)
  }

  /** The run that is resumed, or that this one is a fork of; undefined for a new run. */
  async origin(): Promise<Origin | undefined> {
    const { kind, fork, fresh = false } = this.#start
    if (!fork && (kind !== "resume" || fresh)) return undefined
    const directory = fork ? fork.run : this.directory
    const config = await readRunConfig(join(directory, files.config))
    return config && { directory, config, forked: fork !== undefined }
  }

  /** What a run that goes on chose when it began. */
  get settled(): ResolvedLearningRates {
    return this.#start.settled ?? {}
  }

  /** The newest checkpoint, or the one that was forked; undefined before the first. */
  get checkpoint(): Checkpoint | undefined {
    return this.#checkpoint
  }

  /** Whether an existing run continues; one that had saved nothing begins again. */
  get resumed(): boolean {
    return this.#start.kind === "resume"
  }

  /** Completed iterations that a checkpoint holds. */
  get iteration(): number {
    return this.#checkpoint?.iteration ?? 0
  }

  /** Whether the checkpoint lies in this run's folder. */
  get saved(): boolean {
    return this.#checkpoint !== undefined && dirname(dirname(this.#checkpoint.directory)) === this.directory
  }

  /** Whether closing it now would bring back the run that it is to replace. */
  get replaces(): boolean {
    return this.#replaces
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

    const { kind, text, fork, fresh = false } = this.#start
    const metrics = join(directory, files.metrics)
    if (kind === "resume") {
      // Later checkpoints are damaged ones that were passed over: left there, they would be in the way of new ones.
      if (this.saved) await setCheckpointsAside(join(directory, files.checkpoints), this.iteration)
      const path = join(directory, files.config)
      // An evaluation of the weights that it began with may have been of others.
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
    // The lock is written inside the new folder, so that it stands from the moment the folder does.
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

  /** The older run goes, since this one has something to keep. */
  async #keep(): Promise<void> {
    if (this.#replaces) await discardReplaced(this.directory)
    this.#replaces = false
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

  /** Puts a report in place of the last line, which is of the same iteration: what was stopped then has been made up for. */
  async amend(report: IterationReport): Promise<void> {
    await this.begin()
    const path = join(this.directory, files.metrics)
    await this.#metrics!.close()
    try {
      this.#length = await replaceLast(path, report)
    } finally {
      this.#metrics = await io("open", path, openRegular(path, "r+"))
    }
  }

  /** What metrics.jsonl says. */
  async reports(): Promise<readonly IterationReport[]> {
    return await readReports(join(this.directory, files.metrics))
  }

  /**
   * The best evaluation of those whose weights are there still: in a checkpoint, or as the model that the run began with.
   *
   * @param beside an iteration that has no checkpoint yet and counts all the same
   */
  async best(beside?: number): Promise<BestEvaluation | undefined> {
    const parent = join(this.directory, files.checkpoints)
    const there = new Set([0, beside, ...(await listCheckpoints(parent))])
    const best = bestOf((await this.reports()).filter(({ iteration }) => there.has(iteration)))
    return best && best.iteration > 0 ? { ...best, directory: checkpointPath(parent, best.iteration) } : best
  }

  /** Writes checkpoints/step-`iteration` and then removes all but the `keep` newest checkpoints, the best one, and `spare`. */
  async saveCheckpoint(iteration: number, saved: Saved, keep: number, spare?: Checkpoint): Promise<Checkpoint> {
    await this.begin()
    const parent = join(this.directory, files.checkpoints)
    this.#checkpoint = await writeCheckpoint(parent, iteration, saved)
    await this.#keep()
    await pruneCheckpoints(parent, iteration, keep, [spare?.iteration, (await this.best())?.iteration])
    return this.#checkpoint
  }

  /** Makes an earlier checkpoint, or none, the newest again; those after it stay as checkpoints/suspect-N. */
  async goBackTo(good: Checkpoint | undefined): Promise<void> {
    await setCheckpointsAside(join(this.directory, files.checkpoints), good?.iteration ?? 0)
    this.#checkpoint = good
  }

  /** Writes the final model in Hugging Face layout, whole or not at all, in place of an earlier one; returns its folder. */
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

  /** Whether the model is one that gigpo 0.1 wrote, which kept no manifest. */
  async #isOlderModel(): Promise<boolean> {
    const names = ["config.json", "model.safetensors", "tokenizer.json"].map((name) => join(this.#model, name))
    const there = await Promise.all(names.map(isThere))
    return there.every(Boolean) && (await readWritten(this.#model)) === undefined
  }

  /**
   * Refuses what would fail later, and touches nothing.
   *
   * @throws GigpoError `BAD_CONFIG` where the options are others than those of the run, or it would be resumed with another tokenizer, environment, estimator, loss, hooks or tasks than the checkpoint is of;
   * `BAD_MODEL` where it would go on with other frozen weights than it began with; `FILE_EXISTS` where files of others are in the
   * way of the final model; `IO` where the disk cannot be written or has too little room.
   */
  async check(saved: Partial<Saved & Room & Chosen>): Promise<void> {
    const { parts, files: copied, frozen, settled = {}, promptDate, asked, store, critic, room = 2 } = saved
    const { kind, text } = this.#start
    const resolved = asked && checkStated(this.directory, this.#given, asked)
    this.#checkParts(parts)
    if (this.#goesOn) {
      checkSameEnvironment(this.#checkpoint!, saved)
      await checkSameTokenizer(this.#checkpoint!.directory, copied)
    }
    const origin = await this.origin()
    if (origin && !origin.forked && asked)
      checkRecorded(this.directory, origin.config, resolved!, asked, this.#mayChange)
    const told = goesOnWith(frozen, origin, this.#onWarning)
    const chosen = Object.keys(settled).length > 0
    const recorded = resolved && Object.keys(resolved).length > 0
    const all = {
      ...JSON.parse(text),
      ...(told && { frozen: told }),
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

  /** What a run goes on with must be what its checkpoint is of; a fork may choose. */
  #checkParts(parts: Saved["parts"] = {}): void {
    if (this.#goesOn) checkParts(this.#checkpoint!, parts)
  }

  /** Whether a checkpoint of this run is resumed. */
  get #goesOn(): boolean {
    return this.#start.kind === "resume" && this.saved
  }

  /**
   * Puts the policy and all that has a memory back to the checkpoint; does nothing in a new run. A fork may have other parts than
   * the run that it is of: these begin anew, with a warning.
   */
  async restore(saved: Saved): Promise<void> {
    this.#checkParts(saved.parts)
    if (!this.#checkpoint) return
    for (const odd of await restoreCheckpoint(this.#checkpoint, saved)) this.#onWarning(odd)
  }

  /** Lets another process work in the folder. */
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

/** What another process did since this one looked is no reason to overwrite it. */
function begunMeanwhile(directory: string): GigpoError {
  return new GigpoError(
    "RUN_LOCKED",
    `Another process began a run in ${directory} at the same moment. Wait for it or stop it, then resume it; or choose another folder.`,
  )
}

/** What a training or cloning is called in messages. */
export function nameOf(call: string, { run }: { readonly run?: Run | undefined }): string {
  return run ? `${call} with the run in ${run.directory}` : `${call} without a run`
}
