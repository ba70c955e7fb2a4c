import { readdir } from "node:fs/promises"
import { isAbsolute, join, relative, sep } from "node:path"
import { resolveFolder } from "../files/atomic-directory.ts"
import { inside } from "../files/inside.ts"
import { ioError, isSystemError, isThere } from "../files/io-error.ts"
import { lookAt } from "../files/regular-file.ts"
import { GigpoError } from "../util/errors.ts"
import { readRunConfig } from "./config.ts"
import { runFiles } from "./files.ts"
import { isBeingReplaced } from "./replaced.ts"

/** How `Run.open` treats an existing run. */
export interface RunMode {
  /**
   * Whether to resume the existing run from its newest intact checkpoint. A run without a checkpoint restarts. "auto" starts a new run where
   * there is none, for preemptible machines. Default false.
   */
  readonly resume?: boolean | "auto" | undefined
  /** Whether to replace the existing run. The old run is restored if the new one ends before its first checkpoint. Default false. */
  readonly overwrite?: boolean | undefined
  /**
   * Run to fork: a folder of a run, or one of its checkpoints. The new run starts with that state and the log up to there. Configuration,
   * estimator, loss, hooks and tasks may differ; parts that differ start without a saved state. The model must have the same shape.
   */
  readonly fork?: string | undefined
}

/**
 * Checks a folder as `Run.open` does, without changing anything. For a check before a model is loaded.
 *
 * @returns whether the folder contains a run
 * @throws GigpoError the errors of `Run.open` for this folder and mode.
 */
export async function checkRunFolder(directory: string, mode: RunMode): Promise<"nothing" | "run"> {
  const path = await resolveFolder(directory)
  const { resume = false, overwrite = false, fork } = mode
  if (resume && overwrite)
    throw new GigpoError("BAD_ARGUMENT", "resume and overwrite are both given; choose one of them.")
  if (resume === true && fork !== undefined)
    throw new GigpoError(
      "BAD_ARGUMENT",
      'resume and fork are both given, but a fork starts a new run: leave resume out, or set it to "auto".',
    )
  if (fork !== undefined && (await liesIn(fork, path)))
    throw new GigpoError("BAD_ARGUMENT", `${fork} is inside the run folder ${directory}; fork it into another folder.`)
  const state = await folderState(path)
  if (state === "other") {
    await refuseBrokenRun(path)
    throw new GigpoError(
      "RUN_EXISTS",
      `${path} exists but is not a run folder of gigpo (config.json and metrics.jsonl), so it is not changed. ` +
        "Choose another folder for the run.",
    )
  }
  if (state === "nothing" && resume === true)
    throw new GigpoError(
      "RUN_MISSING",
      `There is no run in ${path} to resume. Start it without --resume (in code: resume).`,
    )
  if (state === "run" && !resume && !overwrite) {
    throw new GigpoError(
      "RUN_EXISTS",
      `There is already a run in ${path}. Resume it (--resume), replace it (--overwrite), or choose another folder.`,
    )
  }
  return state
}

/** Returns the kind of content of a folder. Throws `UNSAFE_PATH` if files or folders of a run are links, `IO` for an error of the system. */
export async function folderState(path: string): Promise<"nothing" | "run" | "other"> {
  try {
    const entries = await readdir(path)
    if (entries.length === 0) return "nothing"
    if (!isBeingReplaced(entries)) {
      if (!entries.includes(runFiles.metrics) || !(await lookAt(await inside(path, runFiles.metrics)))?.isFile())
        return "other"
      if (!(await readRunConfig(join(path, runFiles.config)))) return "other"
    }
    await Promise.all(Object.values(runFiles).map((name) => inside(path, name)))
    return "run"
  } catch (cause) {
    if (GigpoError.is(cause)) throw cause
    if (isSystemError(cause) && cause.code === "ENOENT") return "nothing"
    if (isSystemError(cause) && cause.code === "ENOTDIR" && (await isThere(path))) return "other"
    throw ioError("read", path, cause)
  }
}

/** Throws `RUN_CORRUPT` for a folder of a run whose config.json or metrics.jsonl is missing or damaged. */
export async function refuseBrokenRun(path: string): Promise<void> {
  const traces = [runFiles.config, runFiles.metrics, runFiles.checkpoints]
  const [config, metrics, checkpoints] = await Promise.all(traces.map((name) => isThere(join(path, name))))
  const isConfig = (await readRunConfig(join(path, runFiles.config)).catch(() => undefined)) !== undefined
  const isBroken = isConfig ? checkpoints && !metrics : metrics && checkpoints
  if (!isBroken) return
  const [file, how] = isConfig
    ? [runFiles.metrics, "is missing"]
    : [runFiles.config, config ? "is damaged or was not written by gigpo" : "is missing"]
  throw new GigpoError(
    "RUN_CORRUPT",
    `The run in ${path} is damaged: its ${file} ${how}. Restore an intact copy of that file, or start a run in another ` +
      "folder from one of its checkpoints (--fork).",
  )
}

/** Whether a path is a folder or inside it, after links are resolved. */
export async function liesIn(path: string, folder: string): Promise<boolean> {
  const way = relative(await resolveFolder(folder), await resolveFolder(path))
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}
