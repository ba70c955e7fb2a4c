import { readdir, stat } from "node:fs/promises"
import { join, resolve } from "node:path"
import { checkLinks } from "../files/intact.ts"
import { ioError, isSystemError, isThere } from "../files/io-error.ts"
import { settleFolder } from "../files/replace-files.ts"
import { parentOf, parseHubName } from "../hub/names.ts"
import { GigpoError } from "../util/errors.ts"
import { copiedName } from "./copied-files.ts"
import { isGguf } from "./gguf/is-gguf.ts"
import { isRun, stateOfRun } from "./run-models.ts"

/**
 * Checks that a path can be the folder of a model or tokenizer, or a GGUF file. An interrupted write that this machine's journal
 * lists for the folder is completed.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an empty path; `BAD_MODEL` for a missing folder, a file, a run, and a folder that contains
 * models; `UNSAFE_PATH` for links that are not followed; `UNFINISHED_WRITE` for an interrupted write of another user; `IO`.
 */
export async function checkModelFolder(directory: string): Promise<void> {
  if (typeof directory !== "string" || directory === "")
    throw new GigpoError("BAD_ARGUMENT", "The path of a model must be a non-empty string; give the path of its folder.")
  if (await isGguf(directory)) return
  if (!(await isFolder(directory))) throw bad(await absence(directory))
  if (await isRun(directory)) throw bad(`${directory} is a run, not a model. ${(await stateOfRun(directory)).about}`)
  await checkLinks(directory)
  await settleFolder(directory)
  const beside = await modelsIn(directory)
  if (beside.length > 0)
    throw bad(`${directory} contains no model files itself. Give one of its folders: ${beside.join(", ")}.`)
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
    return `${directory} is a file, but not in GGUF format; give the folder of the model files, or a GGUF file.`
  const name = parseHubName(directory)
  const isPath = name && (await isThere(parentOf(name)))
  return (
    `There is no folder ${resolve(directory)}. Give a model folder in Hugging Face layout, or a model's name on the Hugging Face Hub ` +
    `(owner/name)${isPath ? `: ${name.repository}@main, since a folder ${parentOf(name)} is here` : ""}.`
  )
}

/** Matches file names of which every folder of a model, adapter or tokenizer has at least one. */
const anyOf = /^(config|tokenizer|adapter_config|remote)\.json$|\.(safetensors|bin|pt|pth)$/

/** Returns up to 5 folders of models and runs in a folder that is neither, such as the one that `gigpo init` creates. */
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

/** Returns the file names of a saved model, including copied files. A model too large for one file has several in place of model.safetensors. */
export const modelNames = (copied: readonly string[] = []): string[] => [
  "config.json",
  "model.safetensors",
  ...copied.map(copiedName),
]
