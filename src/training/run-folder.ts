import { readdir, stat } from "node:fs/promises"
import { isAbsolute, join, relative, sep } from "node:path"
import { GigpoError } from "../errors.ts"
import { resolveFolder } from "../files/atomic-directory.ts"
import { ioError, isSystemError, isThere } from "../files/io-error.ts"
import { isBeingReplaced } from "./replaced-run.ts"
import { readRunConfig } from "./run-config.ts"
import { runFiles } from "./run-files.ts"

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
    throw new GigpoError(
      "RUN_EXISTS",
      `${path} is there but is no run folder of gigpo (config.json and metrics.jsonl), so it is left alone. ` +
        "Choose another folder for the run.",
    )
  }
  if (state === "nothing" && resume === true)
    throw new GigpoError("RUN_CORRUPT", `There is no run in ${path} to resume. Start it without --resume.`)
  if (state === "run" && !resume && !overwrite) {
    throw new GigpoError(
      "RUN_EXISTS",
      `There is a run in ${path} already. Go on with it (--resume), replace it (--overwrite), or choose another folder.`,
    )
  }
  return state
}

export async function folderState(path: string): Promise<"nothing" | "run" | "other"> {
  try {
    const entries = await readdir(path)
    if (entries.length === 0) return "nothing"
    if (isBeingReplaced(entries)) return "run"
    const isFile = async (name: string) => entries.includes(name) && (await stat(join(path, name))).isFile()
    return (await isFile(runFiles.metrics)) && (await readRunConfig(join(path, runFiles.config))) ? "run" : "other"
  } catch (cause) {
    if (isSystemError(cause) && cause.code === "ENOENT") return "nothing"
    if (isSystemError(cause) && cause.code === "ENOTDIR" && (await isThere(path))) return "other"
    throw ioError("read", path, cause)
  }
}

/** Whether a path is a folder's or below it, wherever links lead. */
export async function liesIn(path: string, folder: string): Promise<boolean> {
  const way = relative(await resolveFolder(folder), await resolveFolder(path))
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}
