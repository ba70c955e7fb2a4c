import { isThere } from "../files/io-error.ts"
import { GigpoError } from "../util/errors.ts"
import { findRuns } from "../view/runs.ts"
import { commandLine } from "./arguments.ts"

/** Default folders of runs: `runs`, where runs are created by default, else the working directory. */
const usual = ["runs", "."] as const

/** Text about the default folder in the help of commands. */
export const usualPlaces = `default: ./${usual[0]} if it exists, else ${usual[1]}`

/** Given folder of runs, or the default one. Throws `BAD_ARGUMENT` if the given one does not exist. */
export async function folderOfRuns(given: string | undefined): Promise<string> {
  if (given === undefined) return (await isThere(usual[0])) ? usual[0] : usual[1]
  if (await isThere(given)) return given
  throw new GigpoError("BAD_ARGUMENT", `There is no folder ${given}; give a folder that contains runs.`)
}

/** Given folders of runs, or the default one. Throws `BAD_ARGUMENT` if the default one contains no run. */
export async function foldersOfRuns(given: readonly string[]): Promise<readonly string[]> {
  if (given.length > 0) return given
  const folder = await folderOfRuns(undefined)
  if ((await findRuns(folder)).length > 0) return [folder]
  throw new GigpoError("BAD_ARGUMENT", noRuns(folder))
}

/** Message for a folder without runs. */
export function noRuns(folder: string): string {
  const where = folder === "." ? "in this folder or below it" : `in ${folder}`
  return `There are no runs ${where}. Give another folder, or start a run: ${commandLine("train", "config.yaml")} (${commandLine("init", "sokoban", "demo")} writes a first configuration).`
}
