import { join } from "node:path"
import type { Command } from "commander"
import { logWarning } from "../../runs/check-metrics.ts"
import { runFiles } from "../../runs/files.ts"
import { readReports } from "../../runs/metrics-log.ts"
import type { EvaluationReport, IterationReport } from "../../runs/report.ts"
import { GigpoError } from "../../util/errors.ts"
import type { RunInfo } from "../../view/data/source.ts"
import { describeRun, findRuns } from "../../view/runs.ts"
import { formatDuration, formatNumber, formatShare } from "../terminal/format.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"
import { Screen } from "../terminal/screen.ts"
import { table } from "../terminal/table.ts"
import { folderOfRuns, noRuns, usualPlaces } from "../usual-runs.ts"

export function runsCommand(command: Command): Command {
  return command
    .description(
      "Lists the runs in a folder and below. SUCCESS is the success rate of the last evaluation, with its 95 % interval; TRAINING that of the " +
        "last iteration, or its mean return if the environment reports no success.",
    )
    .argument("[folder]", `folder to search; ${usualPlaces}`)
    .option("--json", "print the runs as one JSON line")
    .action((folder, options) => interruptible(() => listRuns(folder, options)))
}

/** Run with its last evaluation and metrics. */
interface Listed extends Omit<RunInfo, "id" | "settings"> {
  readonly directory: string
  readonly evaluation?: EvaluationReport & { readonly iteration: number }
  readonly metrics?: IterationReport["metrics"]
}

async function listRuns(given: string | undefined, { json = false }: { readonly json?: boolean }): Promise<void> {
  const folder = await folderOfRuns(given)
  const warn = (message: string) => new Screen(process.stderr, { live: false }).print(message)
  const directories = await findRuns(folder)
  const found = await Promise.all(directories.map((directory) => listed(directory, folder, warn)))
  const runs = found.flatMap((run) => run ?? [])
  const warnings = await Promise.all(runs.map(({ directory }) => logWarning(directory)))
  for (const warning of warnings) if (warning) warn(warning)
  if (json) return void printJson(runs)
  const screen = new Screen(process.stdout, { live: false })
  if (runs.length === 0) return screen.print(noRuns(folder))
  const head = ["RUN", "STATE", "ITERATION", "SUCCESS", "TRAINING", "TIME LEFT", "LAST REPORT"]
  for (const line of table([head, ...runs.map((run) => row(run, Date.now()))], [2])) screen.print(line)
}

/**
 * Description of one run. Undefined if the folder was removed, cannot be read, or is being replaced; `warn` receives a
 * message on damage.
 */
async function listed(directory: string, within: string, warn: (message: string) => void): Promise<Listed | undefined> {
  try {
    const reports = await readReports(join(directory, runFiles.metrics))
    const { id: _, settings: __, checkpoints: ___, ...info } = await describeRun(directory, { reports, within })
    const evaluated = reports.findLast(({ evaluation }) => evaluation)
    const metrics = reports.findLast(({ iteration }) => iteration > 0)?.metrics
    return {
      ...info,
      directory,
      ...(evaluated && { evaluation: { iteration: evaluated.iteration, ...evaluated.evaluation! } }),
      ...(metrics && { metrics }),
    }
  } catch (error) {
    if (GigpoError.is(error) && ["RUN_CORRUPT", "UNSAFE_PATH"].includes(error.code)) return void warn(error.message)
    if (GigpoError.is(error) && ["BAD_ARGUMENT", "IO"].includes(error.code)) return undefined
    throw error
  }
}

function row(
  { name, state, iteration, iterations, evaluation, metrics, secondsLeft, time }: Listed,
  now: number,
): string[] {
  return [
    name,
    state,
    iterations === undefined ? String(iteration) : `${iteration}/${iterations}`,
    evaluation ? success(evaluation) : "–",
    training(metrics ?? {}),
    secondsLeft === undefined ? "–" : formatDuration(secondsLeft),
    time === undefined ? "–" : `${formatDuration(Math.max(now - Date.parse(time), 0) / 1000)} ago`,
  ]
}

function success({ success, successInterval: [low, high], metrics, meanReturn }: EvaluationReport): string {
  if (metrics.success === undefined) return `return ${formatNumber(meanReturn)}`
  return `${formatShare(success)} (${formatShare(low)} to ${formatShare(high)})`
}

function training(metrics: IterationReport["metrics"]): string {
  const { "episode/success": share, "episode/return": sum } = metrics
  if (share !== undefined) return formatShare(share)
  return sum === undefined ? "–" : `return ${formatNumber(sum)}`
}
