import { createHash } from "node:crypto"
import { lstat, realpath } from "node:fs/promises"
import { join, sep } from "node:path"
import { inside } from "../../files/inside.ts"
import { isMissing } from "../../files/io-error.ts"
import { runFiles } from "../../runs/files.ts"
import { GigpoError } from "../../util/errors.ts"
import { findRuns } from "../runs.ts"

/** Run with its names. */
export interface FoundRun {
  /** Identifier, derived from the location of the run; not a path. */
  readonly id: string
  /** Shortest part of the path that distinguishes the run from the others. */
  readonly name: string
  readonly directory: string
}

/** Runs to show: the given folders, and runs below them, including later ones. */
export class RunFolders {
  readonly #roots: readonly string[]
  #known: ReadonlyMap<string, FoundRun> = new Map()
  #looking: Promise<readonly FoundRun[]> | undefined

  /** Opens the folders. Throws GigpoError `BAD_ARGUMENT` if a folder does not exist or contains no run. */
  static async open(paths: readonly string[]): Promise<RunFolders> {
    if (!Array.isArray(paths) || paths.length === 0 || !paths.every((path) => typeof path === "string" && path !== ""))
      throw new GigpoError("BAD_ARGUMENT", "No run is given. Give the folder of a run, or a folder that contains runs.")
    const roots: string[] = []
    for (const path of paths) {
      const root = await placeOf(path)
      if ((await runsBelow(root)).length === 0)
        throw new GigpoError(
          "BAD_ARGUMENT",
          `There is no run in ${path}, nor in the folders below it: none has config.json and metrics.jsonl of gigpo. ` +
            "Give the folder of a run, or a folder that contains runs.",
        )
      roots.push(root)
    }
    return new RunFolders(roots)
  }

  private constructor(roots: readonly string[]) {
    this.#roots = roots
  }

  /** Existing runs, in the order of the given folders. */
  async list(): Promise<readonly FoundRun[]> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return await this.#looking
  }

  /** Finds a run by its id; undefined if it does not exist, or no longer exists. */
  async find(id: string): Promise<FoundRun | undefined> {
    const run = this.#known.get(id) ?? (await this.list()).find((one) => one.id === id)
    return run && (await isOurs(run.directory)) ? run : undefined
  }

  async #look(): Promise<readonly FoundRun[]> {
    const found = await Promise.all(this.#roots.map(runsBelow))
    const directories = [...new Set(found.flat())]
    const names = shortNames(directories)
    const runs = directories.map((directory, at) => ({ id: idOf(directory), name: names[at]!, directory }))
    this.#known = new Map(runs.map((run) => [run.id, run]))
    return runs
  }
}

/** Shortest suffixes of paths, in whole parts, that distinguish them. */
export function shortNames(paths: readonly string[]): readonly string[] {
  const ends = paths.map((path) => {
    const parts = path.split(sep).filter(Boolean)
    return parts.map((_, at) => parts.slice(-at - 1).join("/"))
  })
  const counts = new Map<string, number>()
  for (const end of ends.flat()) counts.set(end, (counts.get(end) ?? 0) + 1)
  // "run" alone says nothing: the folder above it names the run.
  return ends.map((own) => own.find((end) => counts.get(end) === 1 && end !== "run") ?? own.at(-1) ?? sep)
}

async function placeOf(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (cause) {
    throw new GigpoError(
      "BAD_ARGUMENT",
      `${path} does not exist or cannot be read; give the folder of a run, or a folder that contains runs.`,
      { cause },
    )
  }
}

async function runsBelow(root: string): Promise<readonly string[]> {
  const found = await findRuns(root).catch(() => [])
  const ours = await Promise.all(found.map(isOurs))
  return found.filter((_, at) => ours[at])
}

/** Whether the files of a run are regular files; links could lead out of the folder, and pipes would block. */
async function isOurs(directory: string): Promise<boolean> {
  const kinds = [runFiles.config, runFiles.metrics, runFiles.lock].map(async (name) => {
    try {
      return (await lstat(join(directory, name))).isFile()
    } catch (cause) {
      return isMissing(cause) && name === runFiles.lock
    }
  })
  const links = Object.values(runFiles).map((name) => inside(directory, name).then(Boolean, () => false))
  return (await Promise.all([...kinds, ...links])).every(Boolean)
}

function idOf(directory: string): string {
  return createHash("sha256").update(directory).digest("hex").slice(0, 16)
}
