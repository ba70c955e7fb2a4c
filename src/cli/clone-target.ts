import { readdir, realpath } from "node:fs/promises"
import { resolve } from "node:path"
import { GigpoError } from "../errors.ts"

export interface TargetArguments {
  readonly out?: string
  readonly inPlace?: boolean
  readonly overwrite?: boolean
  readonly resume?: boolean
}

/** Refuses a command that does not say where the model is to go. */
export function checkTargetGiven({ out, inPlace = false }: TargetArguments): void {
  if (out !== undefined || inPlace) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    "Where is the cloned model to go? Give --out <folder>, or --in-place to replace the configured model.",
  )
}

/**
 * The folder that the cloned model is to go to, which is looked at before anything is played: the configured model's own only where
 * that was said, another model's only where that may be replaced.
 */
export async function cloneTarget(model: string, options: TargetArguments): Promise<string> {
  const { out, overwrite = false, resume = false } = options
  if (out === undefined) return model
  if ((await placeOf(out)) === (await placeOf(model)))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `${out} is the configured model itself: give --in-place to replace it, or another folder.`,
    )
  // One that was begun may be finished.
  await checkModelFolder(out, overwrite || resume)
  return out
}

async function placeOf(folder: string): Promise<string> {
  return await realpath(folder).catch(() => resolve(folder))
}

/** Refuses a folder that would be lost: anything but a model folder, and that one too unless it may be replaced. */
async function checkModelFolder(out: string, overwrite: boolean): Promise<void> {
  const entries = await readdir(out).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return []
    throw new GigpoError("BAD_ARGUMENT", `--out ${out} is not a folder that can be read; choose another.`, {
      cause: error,
    })
  })
  if (entries.length === 0) return
  const isModel = entries.includes("config.json") && entries.some((name) => name.endsWith(".safetensors"))
  if (!isModel)
    throw new GigpoError("BAD_ARGUMENT", `${out} is there and is no model folder; choose another for --out.`)
  if (!overwrite)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `There is a model in ${out}; add --overwrite to replace it, or choose another.`,
    )
}
