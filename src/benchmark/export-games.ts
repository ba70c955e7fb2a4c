import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { householdFiles } from "../environment/alfworld/generate/files.ts"
import { type HouseholdOptions, householdFields } from "../environment/alfworld/generate/options.ts"
import type { HouseholdTask } from "../environment/alfworld/generate/tasks.ts"
import { resolveFolder, writeDirectory } from "../files/atomic-directory.ts"
import { checkArguments, checkPath, type KeysOf } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import type { Benchmark } from "./benchmark.ts"
import { pick } from "./options.ts"

/** Options of `exportGames`. */
export interface ExportGamesOptions {
  /** Whether to replace files that gigpo wrote there. By default the folder must be empty or not exist. */
  readonly overwrite?: boolean | undefined
  /** Called with the number of games written so far, and of all. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined
  /** Signal that aborts the export; nothing is written then. */
  readonly signal?: AbortSignal | undefined
}

const optionKeys: KeysOf<ExportGamesOptions> = { overwrite: true, onProgress: true, signal: true }

/**
 * Writes a benchmark of generated households as game files for the loader of ALFWorld, so that other software can be evaluated on the same tasks:
 * `<folder>/json_2.1.1/<split>/<task>/<trial>/` with `game.tw-pddl` and `traj_data.json`. `gigpo.json` in the folder has the name and digests of
 * the benchmark, and the path of each game by the key of its task. The folder is written atomically.
 *
 * @param benchmark - benchmark from `openBenchmark`.
 * @param folder - folder that does not exist, is empty, or was written by gigpo (with `overwrite`).
 * @returns path of the games, `<folder>/json_2.1.1`
 * @throws GigpoError `BAD_ARGUMENT` for a benchmark without generated households, or a folder that ALFWorld would skip; `FILE_EXISTS` for other
 * files; `IO` for an error of the system; the reason of the signal.
 */
export async function exportGames(
  benchmark: Benchmark,
  folder: string,
  options: ExportGamesOptions = {},
): Promise<string> {
  checkArguments("exportGames", benchmark)
  checkPath("exportGames: folder", folder)
  checkArguments("exportGames", options, optionKeys)
  const { overwrite, onProgress, signal } = options
  const { name, digests, tasks } = benchmark
  const households = householdsOf(benchmark)
  // The loader looks at the whole path (collect_game_files of alfworld/agents/environment/alfred_tw_env.py).
  const path = await resolveFolder(folder)
  const passedOver = /movable|Sliced/.exec(path)?.[0]
  if (passedOver !== undefined)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `ALFWorld skips every game whose path contains "${passedOver}", as ${path} does; choose another folder.`,
    )
  const household = pick(benchmark.options, Object.keys(householdFields)) as HouseholdOptions
  const split = `json_2.1.1/${benchmark.options.testSplit ?? "valid_seen"}`
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
      await setImmediate() // a household takes some milliseconds; lets other work run
    }
    return { made: "benchmark", benchmark: name, digests, games }
  }
  await writeDirectory(folder, fill, { overwrite })
  return join(path, "json_2.1.1")
}

function householdsOf({ name, environment, tasks }: Benchmark): HouseholdTask[] {
  const isHousehold = (task: unknown) => environment?.name === "alfworld" && !("game" in Object(task))
  if (Array.isArray(tasks) && tasks.every(({ task }) => isHousehold(task)))
    return tasks.map(({ task }) => task as HouseholdTask)
  throw new GigpoError(
    "BAD_ARGUMENT",
    `The benchmark ${name} has no generated households, and only these can be exported. Export households/seen@1, for example.`,
  )
}
