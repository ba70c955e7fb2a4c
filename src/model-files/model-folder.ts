import { readdir, stat } from "node:fs/promises"
import { join, resolve } from "node:path"
import { checkLinks } from "../files/intact.ts"
import { ioError, isSystemError, isThere } from "../files/io-error.ts"
import { settleFolder } from "../files/replace-files.ts"
import { parentOf, parseHubName } from "../hub/names.ts"
import { GigpoError } from "../util/errors.ts"
import { copiedName } from "./copied-files.ts"
import { isGguf } from "./gguf/open.ts"
import { isRun, stateOfRun } from "./run-models.ts"

/**
 * Refuses what is no folder that a model or its tokenizer could be in, and says what it is instead. Where this machine's journal knows
 * of an interrupted write there, that is finished.
 *
 * @throws GigpoError `BAD_MODEL` for what is not there, for a file, for a run, and for a folder with models in it; `UNSAFE_PATH` for links that are
 * not followed; `UNFINISHED_WRITE` for an interrupted write that is not this user's; `IO` where the system cannot look.
 */
export async function checkModelFolder(directory: string): Promise<void> {
  if (typeof directory !== "string" || directory === "")
    throw new GigpoError("BAD_ARGUMENT", "A model is opened from its folder; give the folder's path.")
  if (await isGguf(directory)) return
  if (!(await isFolder(directory))) throw bad(await absence(directory))
  if (await isRun(directory)) throw bad(`${directory} is a run, not a model. ${(await stateOfRun(directory)).about}`)
  await checkLinks(directory)
  await settleFolder(directory)
  const beside = await modelsIn(directory)
  if (beside.length > 0)
    throw bad(`${directory} has no model's files itself. Give a folder in it: ${beside.join(", ")}.`)
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
  if (await isThere(directory))
    return `${directory} is a file; give the folder that the model's files are in, or a GGUF file.`
  const name = parseHubName(directory)
  const isPath = name && (await isThere(parentOf(name)))
  return (
    `There is no folder ${resolve(directory)}. Give a model folder in Hugging Face layout, or a model's name on the Hugging Face Hub ` +
    `(owner/name)${isPath ? `: ${name.repository}@main, since a folder ${parentOf(name)} is here` : ""}.`
  )
}

/** Names of which one at least lies in the folder of a model, an adapter or a tokenizer. */
const anyOf = /^(config|tokenizer|adapter_config|remote)\.json$|\.(safetensors|bin|pt|pth)$/

/** Folders with models, or of runs, in one that is neither: the folder that `gigpo init` makes, say. */
async function modelsIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true })
  if (entries.some(({ name }) => anyOf.test(name))) return []
  const found: string[] = []
  for (const { name } of entries.filter((entry) => entry.isDirectory()).slice(0, 50)) {
    const path = join(directory, name)
    if ((await isRun(path).catch(() => false)) || (await isThere(join(path, "config.json")))) found.push(path)
  }
  return found.slice(0, 5)
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_MODEL", message)
}

/** What a model is written as, with what is copied beside it; one too large for a file has others in place of its weights. */
export const modelNames = (copied: readonly string[] = []): string[] => [
  "config.json",
  "model.safetensors",
  ...copied.map(copiedName),
]
