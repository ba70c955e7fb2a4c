import { isThere } from "../files/io-error.ts"
import { GigpoError } from "../util/errors.ts"
import { findRuns } from "../view/runs.ts"
import { commandLine } from "./arguments.ts"

/** Where runs are looked for unless it is said: in the folder where they begin by default, else in this one and those below. */
const usual = ["runs", "."] as const

/** For the help of commands that look there. */
export const usualPlaces = `default: ${usual[0]}, or this folder where there is none`

/** The folder of runs that was given, or the usual one. Throws `BAD_ARGUMENT` where the one given is not there. */
export async function folderOfRuns(given: string | undefined): Promise<string> {
  if (given === undefined) return (await isThere(usual[0])) ? usual[0] : usual[1]
  if (await isThere(given)) return given
  throw new GigpoError("BAD_ARGUMENT", `There is no folder ${given}; give one that runs are in.`)
}

/** The folders that were given, or the usual one. Throws `BAD_ARGUMENT` where no run is in that. */
export async function foldersOfRuns(given: readonly string[]): Promise<readonly string[]> {
  if (given.length > 0) return given
  const folder = await folderOfRuns(undefined)
  if ((await findRuns(folder)).length > 0) return [folder]
  throw new GigpoError("BAD_ARGUMENT", noRuns(folder))
}

/** What to do where there are no runs. */
export function noRuns(folder: string): string {
  const where = folder === "." ? "in this folder or below it" : `in ${folder}`
  return `There are no runs ${where}. Give the folder of another place, or begin one: ${commandLine("train", "config.yaml")} (${commandLine("init", "sokoban", "demo")} makes a first configuration).`
}
