import { readdir, stat } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import { GigpoError } from "../errors.ts"
import { ioError, isSystemError, isThere } from "../files/io-error.ts"
import { settleFolder } from "../files/replace-files.ts"

/**
 * Refuses what is no folder that a model or its tokenizer could be in, and says what it is instead; finishes what a crash left undone
 * where one was being replaced.
 *
 * @throws GigpoError `BAD_MODEL` for what is not there, for a file, and for a run; `IO` where the system cannot look.
 */
export async function checkModelFolder(directory: string): Promise<void> {
  if (typeof directory !== "string" || directory === "")
    throw new GigpoError("BAD_ARGUMENT", "A model is opened from its folder; give the folder's path.")
  if (!(await isFolder(directory))) throw bad(await absence(directory))
  if (await isRun(directory)) throw bad(`${directory} is a run, not a model. ${await modelsOfRun(directory)}`)
  await settleFolder(directory)
}

/**
 * The folder of a run's model, of its newest checkpoint where it has not come to its end; any other folder as it is.
 *
 * @throws GigpoError `BAD_MODEL` for a run that was stopped before its first checkpoint
 */
export async function newestModel(directory: string): Promise<string> {
  if (!(await isRun(directory))) return directory
  const model = join(directory, "model")
  if (await isThere(model)) return model
  const checkpoint = await newestCheckpoint(directory)
  if (checkpoint === undefined) throw bad(`${directory} is a run. ${await modelsOfRun(directory)}`)
  return checkpoint
}

async function isRun(directory: string): Promise<boolean> {
  return (await isThere(join(directory, "metrics.jsonl"))) && (await isThere(join(directory, "checkpoints")))
}

async function isFolder(directory: string): Promise<boolean> {
  try {
    return (await stat(directory)).isDirectory()
  } catch (cause) {
    if (isSystemError(cause) && (cause.code === "ENOENT" || cause.code === "ENOTDIR")) return false
    throw ioError("read", directory, cause)
  }
}

async function absence(directory: string): Promise<string> {
  if (await isThere(directory)) return `${directory} is a file; give the folder that the model's files are in.`
  // An owner and a name, where no folder of that name is.
  const mayBeName = /^[\w-][\w.-]*\/[\w.-]+$/.test(directory) && !(await isThere(dirname(directory)))
  const [name, folder] = mayBeName ? [directory, basename(directory)] : ["<name>", "<folder>"]
  const download = `hf download ${name} --local-dir ${folder}`
  return mayBeName
    ? `There is no folder ${directory}. Models are not downloaded by their names on the Hugging Face hub: get the files with ` +
        `"${download}" and give ${folder}.`
    : `There is no folder ${resolve(directory)}. Give a model folder in Hugging Face layout, such as "${download}" makes.`
}

/** A run's model is written at its end; until then its checkpoints are all there is. */
async function modelsOfRun(run: string): Promise<string> {
  if (await isThere(join(run, "model"))) return `Its model is in ${join(run, "model")}.`
  const newest = await newestCheckpoint(run)
  if (newest === undefined) return "It has no model yet, as it was stopped before its first checkpoint."
  return `It has not come to its end; its newest checkpoint is ${newest}.`
}

async function newestCheckpoint(run: string): Promise<string | undefined> {
  const steps = (await readdir(join(run, "checkpoints"))).flatMap((name) => /^step-(\d+)$/.exec(name)?.[1] ?? [])
  return steps.length === 0 ? undefined : join(run, "checkpoints", `step-${Math.max(...steps.map(Number))}`)
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_MODEL", message)
}

/** What a model is written as, with what is copied beside it; one too large for a file has others in place of its weights. */
export const modelNames = (copied: readonly string[] = []): string[] => [
  "config.json",
  "model.safetensors",
  ...copied.map((file) => basename(file)),
]
