import type { Command } from "commander"
import { visible } from "../../util/visible.ts"
import { writeReport } from "../../view/serve/report.ts"
import { wholeNumber } from "../arguments.ts"
import { activity } from "../terminal/activity.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"
import { foldersOfRuns, usualPlaces } from "../usual-runs.ts"

interface ReportArguments {
  readonly out: string
  readonly episodes?: number
  readonly maxSize: number
  readonly overwrite?: boolean
}

export function reportCommand(command: Command): Command {
  return command
    .description(
      "Exports the dashboard of runs (see gigpo view) as one self-contained HTML file without network requests: all curves and settings, " +
        "the metrics of all episodes, and as many complete episodes as fit. An older report is replaced.",
    )
    .argument("[runs...]", `folders of runs, or folders that contain runs; ${usualPlaces}`)
    .requiredOption("-o, --out <file>", "file to write, e.g. report.html")
    .option("--episodes <count>", "maximum number of complete episodes (default: as many as fit)", wholeNumber(0, 1e9))
    .option("--max-size <MB>", "maximum size of the file in MB", wholeNumber(1, 1000), 5)
    .option("--overwrite", "replace a file that is not a report")
    .action((runs, options) => interruptible((signal) => runReport(runs, options, signal), { saves: true }))
}

async function runReport(
  runs: readonly string[],
  { out, maxSize, ...options }: ReportArguments,
  signal: AbortSignal,
): Promise<void> {
  const screen = new Screen(process.stderr)
  const onProgress = (groups: number) => screen.show([`writing episodes, ${groups} groups so far`])
  const onRead = (iterations: number, of: number) =>
    screen.show([`reading episodes, ${iterations} of ${of} iterations`])
  const onWarning = (message: string) => screen.print(message)
  const folders = await foldersOfRuns(runs)
  const written = await activity.during(`reading ${folders.join(", ")}`, () =>
    writeReport(folders, out, { ...options, maxSize, onProgress, onRead, onWarning, signal }),
  )
  screen.clear()
  const runsText = `${written.runs} ${written.runs === 1 ? "run" : "runs"}`
  const groupsText =
    written.recorded === 0
      ? "no recorded episodes"
      : `${written.groups} of ${written.recorded} groups of episodes complete`
  const curvesText = written.iterations
    ? `, curves of ${written.iterations.shown} of ${written.iterations.all} iterations`
    : ""
  screen.print(`${runsText}, ${groupsText}${curvesText}, ${(written.bytes / 1e6).toFixed(2)} MB.`)
  process.stdout.write(`${visible(written.path)}\n`)
}
