import { readdir } from "node:fs/promises"
import { basename, join, relative } from "node:path"
import { io } from "../files/io-error.ts"
import { isHeld } from "../files/lock.ts"
import { checkArguments, checkPath } from "../options/arguments.ts"
import { listCheckpoints } from "../runs/checkpoint.ts"
import { type RunConfig, readRunConfig } from "../runs/config.ts"
import { runFiles } from "../runs/files.ts"
import { folderState, refuseBrokenRun } from "../runs/folder.ts"
import { readReports } from "../runs/metrics-log.ts"
import type { IterationReport } from "../runs/report.ts"
import { GigpoError } from "../util/errors.ts"
import type { RunInfo } from "./data/source.ts"
import { settingsOf } from "./settings.ts"

/** Maximum depth of runs below a folder: runs/<environment>/<attempt>, and a folder of such folders. */
const deepest = 3
/** Number of newest reports that determine the pace. */
const paceOf = 20

/**
 * Folders of the runs below `folder`, up to three levels deep, sorted by name; `folder` itself if it is a run. Damaged runs, and runs that
 * contain links, are included.
 */
export async function findRuns(folder: string): Promise<readonly string[]> {
  checkPath("The folder of runs", folder)
  const found: string[] = []
  const look = async (directory: string, depth: number): Promise<void> => {
    if ((await folderState(directory).catch(damagedRun)) === "run") return void found.push(directory)
    if (depth === deepest) return
    const entries = await io("read", directory, readdir(directory, { withFileTypes: true }))
    const folders = entries.filter((entry) => entry.isDirectory() && !/^(\.|node_modules$)/.test(entry.name))
    for (const { name } of folders.sort((one, other) => (one.name < other.name ? -1 : 1)))
      await look(join(directory, name), depth + 1).catch(passOver)
  }
  await look(folder, 0)
  return found
}

function damagedRun(error: unknown): "run" {
  if (GigpoError.is(error) && ["RUN_CORRUPT", "UNSAFE_PATH"].includes(error.code)) return "run"
  throw error
}

/** Ignores folders that cannot be read or have just been removed. */
function passOver(error: unknown): void {
  if (!(GigpoError.is(error) && error.code === "IO")) throw error
}

/**
 * State of a run: name, progress, settings.
 *
 * @param options.reports - contents of its metrics.jsonl, if already read
 * @param options.within - folder that the name is relative to. Default: the parent folder.
 * @throws GigpoError `BAD_ARGUMENT` if `directory` is no run
 */
export async function describeRun(
  directory: string,
  options: { readonly reports?: readonly IterationReport[]; readonly within?: string } = {},
): Promise<RunInfo> {
  checkArguments("describeRun", options, { reports: true, within: true })
  const { reports, within } = options
  const config = await checkRun(directory)
  const known = reports ?? (await readReports(join(directory, runFiles.metrics)))
  const last = known.at(-1)
  const iteration = last?.iteration ?? 0
  const iterations = plannedIterations(config, last)
  const isDone = last?.stopped !== undefined || (iterations !== undefined && iteration >= iterations)
  const running = await isHeld(join(directory, runFiles.lock))
  const left = isDone || iterations === undefined ? undefined : secondsLeft(known, iterations)
  const checkpoints = await listCheckpoints(join(directory, runFiles.checkpoints)).catch(() => [])
  const name = (within && relative(within, directory)) || basename(directory)
  return {
    id: name,
    name,
    state: running ? "running" : isDone ? "done" : "stopped",
    iteration,
    ...(iterations !== undefined && { iterations }),
    ...(last?.time !== undefined && { time: last.time }),
    ...(left !== undefined && { secondsLeft: left }),
    ...(checkpoints.length > 0 && { checkpoints }),
    settings: settingsOf(config),
  }
}

/** Configuration of a run. Throws `BAD_ARGUMENT` if the folder is no run, `RUN_CORRUPT` if one of its files is broken. */
export async function checkRun(directory: string): Promise<RunConfig> {
  checkPath("The folder of the run", directory)
  const config = (await folderState(directory)) === "run" && (await readRunConfig(join(directory, runFiles.config)))
  if (config) return config
  await refuseBrokenRun(directory)
  throw new GigpoError(
    "BAD_ARGUMENT",
    `There is no run in ${directory}: it has no config.json and metrics.jsonl of gigpo. Pass the folder of a run.`,
  )
}

/** From the configuration of the command line or of code; unknown in SFT, which counts updates. */
function plannedIterations({ training, iterations, resolved }: RunConfig, last?: IterationReport): number | undefined {
  if (last && "sft/epoch" in last.metrics) return undefined
  const within = (group: unknown) => (group as { readonly iterations?: unknown } | undefined)?.iterations
  const planned = within(training) ?? iterations ?? within(resolved)
  return typeof planned === "number" ? planned : undefined
}

/** Estimated from the pace of the newest iterations, independent of interruptions. */
function secondsLeft(reports: readonly IterationReport[], iterations: number): number | undefined {
  const timed = reports.filter(({ metrics }) => typeof metrics["time/run"] === "number")
  const last = timed.at(-1)
  if (!last || last.iteration === 0) return undefined
  // Without an earlier report, time is measured from the start of the first iteration.
  const first = timed.findLast(({ iteration }) => iteration <= last.iteration - paceOf) ?? timed[0]!
  const [from, since] = first === last ? [0, 0] : [first.iteration, first.metrics["time/run"]!]
  const pace = (last.metrics["time/run"]! - since) / (last.iteration - from)
  return Number.isFinite(pace) ? pace * (iterations - last.iteration) : undefined
}
