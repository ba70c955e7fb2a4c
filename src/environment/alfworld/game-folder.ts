import { type Dirent, existsSync, readFileSync } from "node:fs"
import { readdir } from "node:fs/promises"
import { dirname, join, relative, sep } from "node:path"
import { readLinked } from "../../files/regular-file.ts"
import { GigpoError } from "../../util/errors.ts"
import { Random } from "../../util/random.ts"
import { unreadable } from "../unreadable.ts"
import { Game } from "./game.ts"
import { readGameFile } from "./game-file.ts"
import type { TaskType } from "./generate/task-types.ts"
import type { GameTask } from "./tasks.ts"

/** Games of a data folder. */
export interface GameFolder {
  /** Tasks of a split. Training: all games, repeated endlessly in a new order each time. Test: each game once, in a fixed order. */
  tasks(split: "train" | "test", random: Random): Iterable<GameTask>
  load(task: GameTask): Game
}

/**
 * Lists the games that ALFWorld would use. Rejects with `BAD_DATA` for an invalid folder or file, and with the signal's reason.
 */
export async function openGameFolder(
  data: string,
  folders: Readonly<Record<"train" | "test", string>>,
  taskTypes: readonly TaskType[],
  signal?: AbortSignal,
): Promise<GameFolder> {
  const root = [data, join(data, "json_2.1.1")].find((path) =>
    Object.values(folders).some((folder) => existsSync(join(path, folder))),
  )
  if (root === undefined) {
    throw new GigpoError(
      "BAD_DATA",
      `${data} has neither a folder ${folders.train} nor ${folders.test}; give the folder json_2.1.1 of ` +
        `alfworld-download, or set trainSplit and testSplit to its folders.`,
    )
  }
  const games = {
    train: await listGames(root, folders.train, taskTypes, signal),
    test: await listGames(root, folders.test, taskTypes, signal),
  }
  return {
    *tasks(split, random) {
      if (games[split].length === 0) {
        throw new GigpoError(
          "BAD_DATA",
          `${join(root, folders[split])} has no solvable game of the types ${taskTypes.join(", ")}; ` +
            `download the games or set ${split}Split to another folder.`,
        )
      }
      if (split === "test") yield* new Random(0).derive("alfworld test").shuffled(games.test)
      else for (let epoch = 0; ; epoch++) yield* random.derive("alfworld epoch", epoch).shuffled(games.train)
    },
    load({ game }) {
      const path = join(root, game)
      return Game.parse(readGameFile(readNow(path), path), path)
    },
  }
}

/**
 * Lists the game folders, which contain `traj_data.json` and `game.tw-pddl`. As in alfworld/agents/environment/alfred_tw_env.py
 * (collect_game_files), games with movable receptacles or slicing, of other types, or not known to be solvable are skipped. Unlike there,
 * the games are sorted.
 */
async function listGames(
  root: string,
  folder: string,
  taskTypes: readonly TaskType[],
  signal: AbortSignal | undefined,
): Promise<GameTask[]> {
  const entries = await reading(join(root, folder), (path) => readAllEntries(path))
  const files = new Set(entries.map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll(sep, "/")))
  const games = [...files].filter((path) => path.endsWith("/game.tw-pddl") && !/movable|Sliced/.test(path)).sort()
  const tasks: GameTask[] = []
  for (const game of games) {
    signal?.throwIfAborted()
    const trajectory = `${dirname(game)}/traj_data.json`
    if (!files.has(trajectory)) continue
    const type = taskTypeOf(await reading(join(root, trajectory), readText), join(root, trajectory))
    // The constant instead of the substring, which would keep the whole file in memory.
    const taskType = taskTypes.find((one) => one === type)
    if (!taskType) continue
    const { solvable } = readGameFile(await reading(join(root, game), readText), join(root, game))
    if (solvable) tasks.push({ game, taskType })
  }
  return tasks
}

async function readAllEntries(path: string): Promise<Dirent[]> {
  return existsSync(path) ? readdir(path, { recursive: true, withFileTypes: true }) : []
}

// Only this field is parsed, because there are thousands of these files of 50 to 100 kB.
function taskTypeOf(trajectory: string, source: string): string {
  const [, type] = /"task_type"\s*:\s*"(\w+)"/.exec(trajectory) ?? []
  if (type === undefined) {
    throw new GigpoError("BAD_DATA", `${source}: there is no "task_type"; fetch or generate the game again.`)
  }
  return type
}

/** Maximum size of a file in bytes; published ones have up to 0.1 MB. */
const largest = 16 * 2 ** 20

/** Also rejects a pipe, so that `load`, which reads at once, does not block the process. */
async function readText(path: string): Promise<string> {
  return await readLinked(path, largest)
}

async function reading<T>(path: string, read: (path: string) => Promise<T>): Promise<T> {
  try {
    return await read(path)
  } catch (cause) {
    throw unreadable(path, cause)
  }
}

function readNow(path: string): string {
  try {
    return readFileSync(path, "utf8")
  } catch (cause) {
    throw unreadable(path, cause)
  }
}
