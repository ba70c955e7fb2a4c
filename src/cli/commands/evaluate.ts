import { type Command, Option } from "commander"
import type { BenchmarkReport } from "../../benchmark/report.ts"
import type { EvaluationReport } from "../../runs/report.ts"
import { evaluate } from "../../training/evaluate.ts"
import type { StageProgress } from "../../training/progress.ts"
import { type ConfigArguments, commandLine, configCommand, wholeNumber } from "../arguments.ts"
import {
  type BenchmarkArguments,
  benchmarkLines,
  describeReplaced,
  evaluateOnBenchmark,
  openBenchmarkFor,
} from "../benchmark-evaluation.ts"
import { checkConfiguredLengths } from "../config/lengths.ts"
import { loadConfig } from "../config/resolve.ts"
import { checkEvaluationSize } from "../config/sizes.ts"
import { withLocalModel } from "../hub.ts"
import { configuredPlayer, openPlayer, resolveModel } from "../model.ts"
import { warnOfOther } from "../other-environment.ts"
import { evaluationTable, unreadable } from "../terminal/evaluation-table.ts"
import { describeReason } from "../terminal/failures.ts"
import { formatBar } from "../terminal/format.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"
import { Screen } from "../terminal/screen.ts"
import { containingStrays } from "../terminal/strays.ts"

interface EvaluateArguments extends ConfigArguments, BenchmarkArguments {
  readonly model?: string
  readonly json?: boolean
}

export function evaluateCommand(command: Command): Command {
  return configCommand(command)
    .description(
      "Runs one episode of each held-out task (training.evaluation.tasks) and reports the success rate with its 95 % " +
        "interval. The same seed gives the same result. With --benchmark the tasks are those of a benchmark: the same on every " +
        "machine and for every seed.",
    )
    .option(
      "-m, --model <directory>",
      "folder of a model or a run (its model, or a newer checkpoint), instead of the configured model",
    )
    .option(
      "-b, --benchmark <name>",
      `benchmark to evaluate on: a name from "${commandLine("benchmark", "list")}", or a file`,
    )
    .addOption(
      new Option("--repeats <count>", "episodes per task of a benchmark; default: 1").argParser(wholeNumber(1, 10_000)),
    )
    .option("-o, --out <file>", "write the outcome of every episode of a benchmark, as JSON Lines")
    .option("--overwrite", "replace an existing file")
    .option("--json", "print the result as one JSON line")
    .action((file, options) => interruptible((signal) => runEvaluate(file, options, signal)))
}

async function runEvaluate(file: string, options: EvaluateArguments, signal: AbortSignal): Promise<void> {
  const given = await loadConfig(file, options.set, options)
  const config = options.model === undefined ? await withLocalModel(given, signal) : given
  if (options.benchmark === undefined) checkEvaluationSize(config)
  const say = (text: string) => new Screen(process.stderr, { live: false }).print(text)
  const benchmark = await openBenchmarkFor(config, options, signal)
  for (const line of benchmark ? describeReplaced(benchmark) : []) say(line)
  await using player = await configuredPlayer(config, benchmark?.environment)
  const { environment, ...who } = player
  const directory = options.model === undefined ? config.model : await resolveModel(options.model, signal)
  await checkConfiguredLengths(config, directory)
  await warnOfOther(config, directory, environment.name, say)
  await using model = await openPlayer(config, signal, directory)
  const screen = new Screen(process.stdout, options.json ? { live: false } : {})
  const {
    evaluation: { tasks, temperature },
    rollout,
  } = config.training
  const { seed } = config
  const onProgress = ({ done, total }: StageProgress) =>
    screen.show([`${formatBar(done, total, 20)}  episode ${done}/${total}`])
  const work = (signal: AbortSignal): Promise<EvaluationReport | BenchmarkReport> => {
    const setup = { ...model, ...who, temperature, rollout, seed, signal, onProgress }
    if (!benchmark) return evaluate({ ...setup, environment, tasks })
    return evaluateOnBenchmark({ ...setup, benchmark, repeats: options.repeats }, directory, options.out)
  }
  const report = await containingStrays(environment.name, signal, work, say)
  screen.clear()
  if (options.json) {
    const about = { model: directory, environment: environment.name, temperature }
    printJson({ ...about, ...report })
  } else {
    screen.print(`${directory} on ${environment.name}: ${describePlayed(report)}`)
    for (const line of evaluationTable(report, config)) screen.print(line)
    for (const line of "benchmark" in report ? benchmarkLines(report) : []) screen.print(line)
    for (const failure of report.failures ?? []) screen.print(`Failed: ${describeReason(failure)}.`)
  }
  const why = unreadable(report, environment.name, rollout.maxCompletionTokens)
  if (why !== undefined) options.json ? say(why) : screen.print(why)
}

function describePlayed(report: EvaluationReport | BenchmarkReport): string {
  if (!("benchmark" in report)) return `${report.episodes} held-out tasks, one episode each`
  const { benchmark, tasks, repeats } = report
  return `benchmark ${benchmark}, ${tasks} tasks, ${repeats === 1 ? "one episode" : `${repeats} episodes`} each`
}
