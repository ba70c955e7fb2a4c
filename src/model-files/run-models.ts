import { join } from "node:path"
import { inside, insideModel, namesIn } from "../files/inside.ts"
import { checkLinks } from "../files/intact.ts"
import { isThere } from "../files/io-error.ts"
import { isHeld } from "../files/lock.ts"
import { checkpointManifest, folderManifest, readWritten } from "../files/manifest.ts"
import { lookAt, readIfThere } from "../files/regular-file.ts"
import { GigpoError } from "../util/errors.ts"

// A run's model is written when the run ends, and is not updated while a resumed run continues: its checkpoints are newer then.

/** The newest state of a run. */
export interface RunState {
  /** The folder to open; undefined where nothing was saved yet. */
  readonly directory?: string
  /** Which state that is, in sentences. */
  readonly about: string
}

/** Whether a folder is a run's: one with checkpoints, or with a run's configuration where it has none yet. */
export async function isRun(directory: string): Promise<boolean> {
  if (!(await isThere(join(directory, "metrics.jsonl")))) return false
  if (await isThere(join(directory, "checkpoints"))) return true
  const config = (await readIfThere(await insideModel(directory, "config.json"))) ?? ""
  return /"gigpo":\s*"/.test(config) // the key that marks a run's configuration as ours
}

/**
 * The folder to open for what is called a model: of a run its newest state, any other folder as it is. Every command that takes a
 * model asks this.
 *
 * @returns the folder and, of a run, which state it is
 * @throws GigpoError `BAD_MODEL` for a run that has saved nothing yet; `UNSAFE_PATH` for links in a run
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

/** The newest state of a run: its model, unless a checkpoint is of a later iteration. */
export async function stateOfRun(run: string): Promise<RunState> {
  const [model, step] = [await inside(run, "model"), await newestStep(run)]
  const checkpoint = step === undefined ? undefined : await inside(run, `checkpoints/step-${step}`)
  if (!(await isThere(model))) {
    if (checkpoint === undefined) return { about: await nothingSaved(run) }
    return { directory: checkpoint, about: `It has no model yet: its newest checkpoint is ${checkpoint}.` }
  }
  const { iteration } = (await readWritten(model)) ?? {}
  const of = typeof iteration === "number" ? ` after iteration ${iteration}` : ""
  if (checkpoint === undefined || !(await isNewer(checkpoint, step!, model, iteration)))
    return { directory: model, about: `Its newest state is its model${of}, ${model}.` }
  const older = of === "" ? "older" : `that${of}`
  return { directory: checkpoint, about: `Its newest state is its checkpoint ${checkpoint}; its model is ${older}.` }
}

/** By the iteration that the model's manifest tells; by the time of writing where an older version wrote none. */
async function isNewer(checkpoint: string, step: number, model: string, iteration: unknown): Promise<boolean> {
  if (typeof iteration === "number") return step > iteration
  const written = async (path: string) => (await lookAt(path).catch(() => undefined))?.mtimeMs
  const of = (await written(join(model, folderManifest))) ?? (await written(join(model, "config.json"))) ?? 0
  return ((await written(join(checkpoint, checkpointManifest))) ?? 0) > of
}

async function newestStep(run: string): Promise<number | undefined> {
  const names = await namesIn(run, "checkpoints")
  const steps = names.flatMap((name) => /^step-(\d+)$/.exec(name)?.[1] ?? [])
  return steps.length === 0 ? undefined : Math.max(...steps.map(Number))
}

async function nothingSaved(run: string): Promise<string> {
  if (await isHeld(join(run, "run.lock")))
    return "It is under way and has not written its first checkpoint yet: wait for that."
  return "It has no model yet and no checkpoint, as it was stopped before its first checkpoint."
}
