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
   * Go on from the newest whole checkpoint of the run that is there, or from its start where it was stopped before its first.
   * "auto" begins one where there is none: for machines that are taken away. Default false.
   */
  readonly resume?: boolean | "auto" | undefined
  /** Replace the run that is there: it comes back where the new one ends before its first checkpoint. Default false. */
  readonly overwrite?: boolean | undefined
  /**
   * Begin with the state of another run: its folder, or one of its checkpoints. What was logged up to there comes along; the
   * configuration may be another, and so may estimator, loss, hooks and tasks, which then begin anew. The model must be of the
   * same shape.
   */
  readonly fork?: string | undefined
}

/**
 * Refuses what `Run.open` would refuse for what stands at `directory`, without touching it: to be asked before a model is
 * loaded. Returns what is there.
 */
export async function checkRunFolder(directory: string, mode: RunMode): Promise<"nothing" | "run"> {
  const path = await resolveFolder(directory)
  const { resume = false, overwrite = false, fork } = mode
  if (resume && overwrite)
    throw new GigpoError("BAD_ARGUMENT", "A run cannot be resumed and overwritten at once; choose one.")
  if (resume === true && fork !== undefined)
    throw new GigpoError("BAD_ARGUMENT", "A run cannot be resumed and forked at once: a fork begins a run of its own.")
  if (fork !== undefined && (await liesIn(fork, path)))
    throw new GigpoError("BAD_ARGUMENT", `${fork} lies in the run folder ${directory}; fork it into another folder.`)
  const state = await folderState(path)
  if (state === "other") {
    await refuseBrokenRun(path)
    throw new GigpoError(
      "RUN_EXISTS",
      `${path} is there but is no run folder of gigpo (config.json and metrics.jsonl), so it is left alone. ` +
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
      `There is a run in ${path} already. Go on with it (--resume), replace it (--overwrite), or choose another folder.`,
    )
  }
  return state
}

/** What is in a folder. Throws `UNSAFE_PATH` where the files or folders of a run are links, `IO`. */
export async function folderState(path: string): Promise<"nothing" | "run" | "other"> {
  try {
    const entries = await readdir(path)
    if (entries.length === 0) return "nothing"
    if (!isBeingReplaced(entries)) {
      if (!entries.includes(runFiles.metrics) || !(await lookAt(await inside(path, runFiles.metrics)))?.isFile())
        return "other"
      if (!(await readRunConfig(join(path, runFiles.config)))) return "other"
    }
    for (const name of Object.values(runFiles)) await inside(path, name)
    return "run"
  } catch (cause) {
    if (GigpoError.is(cause)) throw cause
    if (isSystemError(cause) && cause.code === "ENOENT") return "nothing"
    if (isSystemError(cause) && cause.code === "ENOTDIR" && (await isThere(path))) return "other"
    throw ioError("read", path, cause)
  }
}

/** Refuses (`RUN_CORRUPT`) a folder that has one of a run's two files and traces of the other, and names the broken file. */
export async function refuseBrokenRun(path: string): Promise<void> {
  const traces = [runFiles.config, runFiles.metrics, runFiles.checkpoints]
  const [config, metrics, checkpoints] = await Promise.all(traces.map((name) => isThere(join(path, name))))
  const isConfig = (await readRunConfig(join(path, runFiles.config)).catch(() => undefined)) !== undefined
  const isBroken = isConfig ? checkpoints && !metrics : metrics && checkpoints
  if (!isBroken) return
  const [file, how] = isConfig
    ? [runFiles.metrics, "is missing"]
    : [runFiles.config, config ? "is damaged or not of gigpo" : "is missing"]
  throw new GigpoError(
    "RUN_CORRUPT",
    `The run in ${path} is broken: its ${file} ${how}. Put back a whole copy of that file, or begin a run in another ` +
      "folder with the state of one of its checkpoints (--fork).",
  )
}

/** Whether a path is a folder's or below it, wherever links lead. */
export async function liesIn(path: string, folder: string): Promise<boolean> {
  const way = relative(await resolveFolder(folder), await resolveFolder(path))
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}
