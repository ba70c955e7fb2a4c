import { join } from "node:path"
import { type Command, Option } from "commander"
import { type Recipe, recipes } from "../../export/recipes.ts"
import { writeDirectory } from "../../files/atomic-directory.ts"
import { replaceFile } from "../../files/atomic-file.ts"
import { checkNewFile } from "../../files/check-new-file.ts"
import { logWarning } from "../../runs/check-metrics.ts"
import { runFiles } from "../../runs/files.ts"
import { readReports } from "../../runs/metrics-log.ts"
import type { IterationReport } from "../../runs/report.ts"
import { GigpoError } from "../../util/errors.ts"
import { episodesToJsonl } from "../../view/record/to-jsonl.ts"
import { episodesToParquet } from "../../view/record/to-parquet.ts"
import { checkRun } from "../../view/runs.ts"
import { reportsToCsv } from "../../view/sinks/csv.ts"
import { EventFile } from "../../view/sinks/event-file.ts"
import { type TrustArgument, trustOption } from "../arguments.ts"
import { exportAdapter } from "../export-adapter.ts"
import { exportAsGguf } from "../export-gguf.ts"
import { someRecorded } from "../recorded.ts"
import { activity } from "../terminal/activity.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"

interface ExportArguments extends TrustArgument {
  readonly as: string
  readonly out: string
  readonly overwrite?: boolean
  readonly dtype?: Recipe
}

interface How {
  readonly overwrite: boolean
  readonly trust: boolean
  readonly signal: AbortSignal
}

/** Formats that are one file. */
const files: Readonly<Record<string, (run: string, path: string) => Promise<void>>> = {
  csv: exportCsv,
  jsonl: ifRecorded(episodesToJsonl),
  parquet: ifRecorded(episodesToParquet),
}
const folders: Readonly<Record<string, (run: string, path: string, how: How) => Promise<void>>> = {
  tensorboard: (run, path, { overwrite }) => writeDirectory(path, (into) => exportEvents(run, into), { overwrite }),
  adapter: exportAdapter,
}

const formats = {
  csv: "metrics as a table, one row per iteration; in SFT, per epoch",
  tensorboard: "metrics as a folder of event files",
  jsonl: "recorded episodes, one per line",
  parquet: "recorded episodes as a table, one row per step",
  adapter: "LoRA adapter of a run on a remote engine, in PEFT's layout (a folder), if the server offers it",
  gguf: "model, newest model of a run, or adapter, for llama.cpp and Ollama",
} as const

export function exportCommand(command: Command): Command {
  return command
    .description("Exports the metrics or episodes of a run, or a model or adapter (GGUF, PEFT).")
    .addHelpText(
      "after",
      `\nFormats:\n${Object.entries(formats)
        .map(([name, text]) => `  ${name.padEnd(13)}${text}`)
        .join("\n")}`,
    )
    .argument("<run>", "folder of a run; for gguf also of a model or an adapter")
    .addOption(
      new Option("--as <format>", "format to write")
        .choices([...Object.keys(files), ...Object.keys(folders), "gguf"])
        .makeOptionMandatory(),
    )
    .requiredOption("-o, --out <path>", "file or folder to write")
    .addOption(
      new Option("--dtype <dtype>", "number format (dtype) of the weights in a GGUF file; default f16").choices(
        Object.keys(recipes),
      ),
    )
    .option("--overwrite", "replace an existing file or folder")
    .addOption(trustOption("trust the configuration of a run from elsewhere: contact its engine with your key"))
    .action((run, options) => interruptible((signal) => runExport(run, options, signal), { saves: true }))
}

async function runExport(
  run: string,
  { as, out, overwrite = false, trust = false, dtype: type }: ExportArguments,
  signal: AbortSignal,
): Promise<void> {
  if (as === "gguf") return await exportAsGguf(run, out, { type, overwrite })
  if (type !== undefined) throw new GigpoError("BAD_ARGUMENT", "--dtype applies only to --as gguf; omit it.")
  await checkRun(run)
  const exported = (work: () => Promise<void>) => activity.during(`exporting ${run} as ${as}`, work)
  if (folders[as]) return await exported(() => folders[as]!(run, out, { overwrite, trust, signal }))
  await checkNewFile(out, overwrite)
  if (as !== "csv") await someRecorded(run)
  await exported(() => files[as]!(run, out))
}

/** Rejects runs without recorded episodes, instead of writing an empty file. */
function ifRecorded(write: (run: string, path: string) => Promise<void>): typeof write {
  return async (run, path) => {
    await someRecorded(run)
    await write(run, path)
  }
}

async function exportCsv(run: string, path: string): Promise<void> {
  await replaceFile(path, reportsToCsv(await reportsOf(run)))
}

async function exportEvents(run: string, folder: string): Promise<void> {
  const file = await EventFile.create(folder, await reportsOf(run))
  await file.close()
}

/** All readable reports. Warns about lines that cannot be read. */
async function reportsOf(run: string): Promise<readonly IterationReport[]> {
  const warning = await logWarning(run)
  if (warning) new Screen(process.stderr, { live: false }).print(warning)
  return await readReports(join(run, runFiles.metrics))
}
