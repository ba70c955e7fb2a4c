import { join } from "node:path"
import { inside, insideModel } from "../files/inside.ts"
import { checkLinks } from "../files/intact.ts"
import { isThere } from "../files/io-error.ts"
import { isHeld } from "../files/lock.ts"
import { checkpointManifest, checkpointsIn, folderManifest, readWritten } from "../files/manifest.ts"
import { lookAt, readIfThere } from "../files/regular-file.ts"
import { GigpoError } from "../util/errors.ts"

// The model of a run is written when the run ends. While a resumed run continues, its checkpoints are newer than that model.

/** Newest saved state of a run. */
export interface RunState {
  /** Folder of the state; undefined if nothing has been saved yet. */
  readonly directory?: string
  /** Description of the state in sentences. */
  readonly about: string
}

/** Whether a folder is that of a run: it has metrics.jsonl, and checkpoints or the configuration of a run. */
export async function isRun(directory: string): Promise<boolean> {
  if (!(await isThere(join(directory, "metrics.jsonl")))) return false
  if (await isThere(join(directory, "checkpoints"))) return true
  const config = (await readIfThere(await insideModel(directory, "config.json"))) ?? ""
  return /"gigpo":\s*"/.test(config) // the field that identifies the configuration of a run
}

/**
 * Returns the folder to open for a path that a command takes as a model: the newest state of a run, or any other folder itself.
 *
 * @returns the folder and, for a run, a description of the state
 * @throws GigpoError `BAD_MODEL` for a run that has saved nothing yet; `UNSAFE_PATH` for links that are not followed
 */
export async function newestModel(directory: string): Promise<{ readonly directory: string; readonly about?: string }> {
  if (!(await isRun(directory))) {
    await checkLinks(directory)
    return { directory }
  }
  const { about, directory: newest } = await stateOfRun(directory)
  if (newest === undefined) throw new GigpoError("BAD_MODEL", `${directory} is a run. ${about}`)
  return { directory: newest, about: `${directory} is a run. ${about}` }
}

/** Returns the newest state of a run: its model, or a checkpoint of a later iteration. */
export async function stateOfRun(run: string): Promise<RunState> {
  const [model, [newest]] = [await inside(run, "model"), await checkpointsIn(join(run, "checkpoints"))]
  const checkpoint = newest && (await inside(run, `checkpoints/${newest.name}`))
  if (!(await isThere(model))) {
    if (checkpoint === undefined) return { about: await nothingSaved(run) }
    return { directory: checkpoint, about: `It has no model yet: its newest checkpoint is ${checkpoint}.` }
  }
  const { iteration } = (await readWritten(model)) ?? {}
  const of = typeof iteration === "number" ? ` after iteration ${iteration}` : ""
  if (checkpoint === undefined || !(await isNewer(checkpoint, newest!.count, model, iteration)))
    return { directory: model, about: `Its newest state is its model${of}, ${model}.` }
  const older = of === "" ? "older" : `that${of}`
  return { directory: checkpoint, about: `Its newest state is its checkpoint ${checkpoint}; its model is ${older}.` }
}

/** Whether a checkpoint is newer than the model: by the iteration in the model's manifest, or by file times where it has none. */
async function isNewer(checkpoint: string, count: number, model: string, iteration: unknown): Promise<boolean> {
  if (typeof iteration === "number") return count > iteration
  const written = async (path: string) => (await lookAt(path).catch(() => undefined))?.mtimeMs
  const of = (await written(join(model, folderManifest))) ?? (await written(join(model, "config.json"))) ?? 0
  return ((await written(join(checkpoint, checkpointManifest))) ?? 0) > of
}

async function nothingSaved(run: string): Promise<string> {
  if (await isHeld(join(run, "run.lock")))
    return "It is in progress and has not written its first checkpoint yet: wait for that checkpoint."
  return "It has no model and no checkpoint, because it stopped before its first checkpoint."
}
