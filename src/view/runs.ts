import { readdir } from "node:fs/promises"
import { basename, join, relative } from "node:path"
import { GigpoError } from "../errors.ts"
import { io } from "../files/io-error.ts"
import { isHeld } from "../files/lock.ts"
import { checkArguments, checkPath } from "../options/arguments.ts"
import { readReports } from "../training/metrics-log.ts"
import type { IterationReport } from "../training/options.ts"
import { type RunConfig, readRunConfig } from "../training/run-config.ts"
import { runFiles } from "../training/run-files.ts"
import { folderState } from "../training/run-folder.ts"
import type { RunInfo } from "./data/source.ts"
import { settingsOf } from "./settings.ts"

/** How deep below a folder runs are looked for: runs/<environment>/<attempt>, and a folder of such folders. */
const deepest = 3
/** Newest reports whose pace says how long the rest will take. */
const paceOf = 20

/** The folders of the runs in `folder`, by name; the folder itself where it is a run's. */
export async function findRuns(folder: string): Promise<readonly string[]> {
  checkPath("The folder of runs", folder)
  const found: string[] = []
  const look = async (directory: string, depth: number): Promise<void> => {
    if ((await folderState(directory)) === "run") return void found.push(directory)
    if (depth === deepest) return
    const entries = await io("read", directory, readdir(directory, { withFileTypes: true }))
    const folders = entries.filter((entry) => entry.isDirectory() && !/^(\.|node_modules$)/.test(entry.name))
    for (const { name } of folders.sort((one, other) => (one.name < other.name ? -1 : 1)))
      await look(join(directory, name), depth + 1).catch(passOver)
  }
  await look(folder, 0)
  return found
}

/** What cannot be read, or has just gone, hides no others. */
function passOver(error: unknown): void {
  if (!(GigpoError.is(error) && error.code === "IO")) throw error
}

/**
 * What a run is and how far it has come.
 *
 * @param options.reports - what its metrics.jsonl says, where that has been read already.
 * @param options.within - the folder that its name is relative to. Default: the one that it lies in.
 * @throws GigpoError `BAD_ARGUMENT` where no run is there.
 */
export async function describeRun(
  directory: string,
  options: { readonly reports?: readonly IterationReport[]; readonly within?: string } = {},
): Promise<RunInfo> {
  checkArguments("describeRun", options, { reports: true, within: true })
  const { reports, within } = options
  const config = await checkRun(directory)
  const told = reports ?? (await readReports(join(directory, runFiles.metrics)))
  const last = told.at(-1)
  const iteration = last?.iteration ?? 0
  const iterations = plannedIterations(config, last)
  const isDone = last?.stopped !== undefined || (iterations !== undefined && iteration >= iterations)
  const running = await isHeld(join(directory, runFiles.lock))
  const left = isDone || iterations === undefined ? undefined : secondsLeft(told, iterations)
  const name = (within && relative(within, directory)) || basename(directory)
  return {
    id: name,
    name,
    state: running ? "running" : isDone ? "done" : "stopped",
    iteration,
    ...(iterations !== undefined && { iterations }),
    ...(last?.time !== undefined && { time: last.time }),
    ...(left !== undefined && { secondsLeft: left }),
    settings: settingsOf(config),
  }
}

/** Refuses (`BAD_ARGUMENT`) what is no folder of a run; returns its configuration. */
export async function checkRun(directory: string): Promise<RunConfig> {
  checkPath("The folder of the run", directory)
  const config = (await folderState(directory)) === "run" && (await readRunConfig(join(directory, runFiles.config)))
  if (config) return config
  throw new GigpoError(
    "BAD_ARGUMENT",
    `There is no run in ${directory}: it has no config.json and metrics.jsonl of gigpo. Give the folder of a run.`,
  )
}

/** By the command line's configuration, or by one from code; unknown of a cloning, whose iterations are optimizer steps. */
function plannedIterations({ training, iterations }: RunConfig, last?: IterationReport): number | undefined {
  if (last && "clone/epoch" in last.metrics) return undefined
  const planned = (training as { readonly iterations?: unknown } | undefined)?.iterations ?? iterations
  return typeof planned === "number" ? planned : undefined
}

/** By the seconds that the newest iterations took, whenever they ran. */
function secondsLeft(reports: readonly IterationReport[], iterations: number): number | undefined {
  const timed = reports.filter(({ metrics }) => typeof metrics["time/run"] === "number")
  const last = timed.at(-1)
  if (!last || last.iteration === 0) return undefined
  // What was there before the first report counts where there is no other: from it the first iteration began.
  const first = timed.findLast(({ iteration }) => iteration <= last.iteration - paceOf) ?? timed[0]!
  const [from, since] = first === last ? [0, 0] : [first.iteration, first.metrics["time/run"]!]
  const pace = (last.metrics["time/run"]! - since) / (last.iteration - from)
  return Number.isFinite(pace) ? pace * (iterations - last.iteration) : undefined
}
