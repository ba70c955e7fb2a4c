import { realpath } from "node:fs/promises"
import { resolve } from "node:path"
import { checkTarget } from "../files/atomic-directory.ts"
import { readWritten } from "../files/manifest.ts"
import { modelNames } from "../model-files/model-folder.ts"
import { GigpoError } from "../util/errors.ts"

export interface TargetArguments {
  readonly out?: string
  readonly inPlace?: boolean
  readonly overwrite?: boolean
  readonly resume?: boolean
}

/** Rejects a command without a place for the model. */
export function checkTargetGiven({ out, inPlace = false }: TargetArguments): void {
  if (out !== undefined || inPlace) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    "The destination of the model is missing: give --out <folder>, or --in-place to replace the configured model.",
  )
}

/**
 * Folder for the fine-tuned model, checked before any episode is played. The configured model is replaced only with
 * `inPlace`; another existing model only with `overwrite`, and only if gigpo made it.
 *
 * @param names - files that will be written.
 */
export async function sftTarget(
  model: string,
  options: TargetArguments,
  names: readonly string[] = modelNames(),
): Promise<string> {
  const { out = model, overwrite = false, inPlace = false, resume = false } = options
  if (!inPlace && (await placeOf(out)) === (await placeOf(model)))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `${out} is the configured model: give --in-place to replace it, or choose another folder.`,
    )
  // With --resume an interrupted write may be finished.
  await checkTarget(out, { overwrite: overwrite || inPlace || resume, names })
  return out
}

/** Whether a model was made by `gigpo sft`. */
export async function isSftModel(model: string): Promise<boolean> {
  return (await readWritten(model))?.made === "sft"
}

async function placeOf(folder: string): Promise<string> {
  return await realpath(folder).catch(() => resolve(folder))
}
