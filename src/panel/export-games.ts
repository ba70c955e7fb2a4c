import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { householdFiles } from "../environment/alfworld/generate/files.ts"
import { type HouseholdOptions, householdFields } from "../environment/alfworld/generate/options.ts"
import type { HouseholdTask } from "../environment/alfworld/generate/tasks.ts"
import { resolveFolder, writeDirectory } from "../files/atomic-directory.ts"
import { checkArguments, checkPath, type KeysOf } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import { pick } from "./options.ts"
import type { Panel } from "./panel.ts"

/** Options of `exportGames`. */
export interface ExportGamesOptions {
  /** Replace what this package wrote there. Default false, which accepts an empty folder only. */
  readonly overwrite?: boolean | undefined
  readonly onProgress?: ((done: number, total: number) => void) | undefined
  /** Aborts it; nothing is written then. */
  readonly signal?: AbortSignal | undefined
}

const optionKeys: KeysOf<ExportGamesOptions> = { overwrite: true, onProgress: true, signal: true }

/**
 * Writes a panel of generated households as game files that ALFWorld's own loader takes, so that other software is measured on the very
 * same tasks: `<folder>/json_2.1.1/<split>/<task>/<trial>/` with `game.tw-pddl` and `traj_data.json`. Its `gigpo.json` holds the panel's
 * name and digests, and the path of each task's game by the task's key. The folder is written whole or not at all.
 *
 * @param panel - as `openPanel` gives it.
 * @param folder - one that is not there, or empty, or that this package wrote.
 * @returns the folder of the games, `<folder>/json_2.1.1`, as a path
 * @throws GigpoError `BAD_ARGUMENT` where the panel has no generated households, or ALFWorld would pass over the folder; `FILE_EXISTS`,
 * `IO`; the signal's reason
 */
export async function exportGames(panel: Panel, folder: string, options: ExportGamesOptions = {}): Promise<string> {
  checkArguments("exportGames", panel)
  checkPath("exportGames: folder", folder)
  checkArguments("exportGames", options, optionKeys)
  const { overwrite, onProgress, signal } = options
  const { name, digests, tasks } = panel
  const households = householdsOf(panel)
  // The loader looks at the whole path (collect_game_files of alfworld/agents/environment/alfred_tw_env.py).
  const path = await resolveFolder(folder)
  const passedOver = /movable|Sliced/.exec(path)?.[0]
  if (passedOver !== undefined)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `ALFWorld passes over every game whose path contains "${passedOver}", as ${path} does; choose another folder.`,
    )
  const household = pick(panel.options, Object.keys(householdFields)) as HouseholdOptions
  const split = `json_2.1.1/${panel.options.testSplit ?? "valid_seen"}`
  const fill = async (temporary: string) => {
    const games: Record<string, string> = {}
    for (const [index, task] of households.entries()) {
      signal?.throwIfAborted()
      const { folder, files } = householdFiles(task, household)
      const place = `${split}/${folder}`
      await mkdir(join(temporary, place), { recursive: true })
      for (const [file, text] of Object.entries(files))
        await writeFile(join(temporary, place, file), text, { flag: "wx" })
      games[tasks[index]!.key] = `${place}/game.tw-pddl`
      onProgress?.(index + 1, households.length)
      await setImmediate() // each is some milliseconds of work
    }
    return { made: "panel", panel: name, digests, games }
  }
  await writeDirectory(folder, fill, { overwrite })
  return join(path, "json_2.1.1")
}

function householdsOf({ name, environment, tasks }: Panel): HouseholdTask[] {
  const isHousehold = (task: unknown) => environment?.name === "alfworld" && !("game" in Object(task))
  if (Array.isArray(tasks) && tasks.every(({ task }) => isHousehold(task)))
    return tasks.map(({ task }) => task as HouseholdTask)
  throw new GigpoError(
    "BAD_ARGUMENT",
    `The panel ${name} has no generated households, which alone become ALFWorld's games; export households/seen@1, say.`,
  )
}
