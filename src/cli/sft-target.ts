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
 * that was said, one with a model only where that may be replaced and gigpo made it.
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
      `${out} is the configured model itself: give --in-place to replace it, or another folder.`,
    )
  // One that was begun may be finished.
  await checkTarget(out, { overwrite: overwrite || inPlace || resume, names })
  return out
}

/** Whether a model is one that was cloned. */
export async function isSftModel(model: string): Promise<boolean> {
  return (await readWritten(model))?.made === "sft"
}

async function placeOf(folder: string): Promise<string> {
  return await realpath(folder).catch(() => resolve(folder))
}
