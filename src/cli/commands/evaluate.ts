import { type Command, Option } from "commander"
import type { PanelReport } from "../../panel/report.ts"
import type { EvaluationReport } from "../../runs/report.ts"
import { evaluate } from "../../training/evaluate.ts"
import type { Progress } from "../../training/progress.ts"
import { type ConfigArguments, commandLine, configCommand, wholeNumber } from "../arguments.ts"
import { checkConfiguredLengths } from "../config/lengths.ts"
import { loadConfig } from "../config/resolve.ts"
import { checkEvaluationSize } from "../config/sizes.ts"
import { withLocalModel } from "../hub.ts"
import { configuredPlayer, openPlayer, resolveModel } from "../model.ts"
import { warnOfOther } from "../other-environment.ts"
import {
  describeReplaced,
  evaluateOnPanel,
  openPanelFor,
  type PanelArguments,
  panelLines,
} from "../panel-evaluation.ts"
import { evaluationTable, unreadable } from "../terminal/evaluation-table.ts"
import { describeReason } from "../terminal/failures.ts"
import { formatBar } from "../terminal/format.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"
import { Screen } from "../terminal/screen.ts"
import { containingStrays } from "../terminal/strays.ts"

interface EvaluateArguments extends ConfigArguments, PanelArguments {
  readonly model?: string
  readonly json?: boolean
}

export function evaluateCommand(command: Command): Command {
  return configCommand(command)
    .description(
      "Runs one episode of each held-out task (training.evaluation.tasks) and reports the success rate with its 95 % " +
        "interval. The same seed gives the same result. With --panel the tasks are those of a panel: the same on every " +
        "machine and for every seed.",
    )
    .option("-m, --model <directory>", "folder of a model or a run (its newest state), instead of the configured model")
    .option("-p, --panel <panel>", `evaluate on a panel: a name from "${commandLine("panel", "list")}", or a file`)
    .addOption(
      new Option("--repeats <count>", "episodes per task of a panel; default: 1").argParser(wholeNumber(1, 10_000)),
    )
    .option("-o, --out <file>", "write the outcome of every episode of a panel, as JSON Lines")
    .option("--overwrite", "replace an existing file")
    .option("--json", "print the result as one JSON line")
    .action((file, options) => interruptible((signal) => runEvaluate(file, options, signal)))
}

async function runEvaluate(file: string, options: EvaluateArguments, signal: AbortSignal): Promise<void> {
  const given = await loadConfig(file, options.set, options)
  const config = options.model === undefined ? await withLocalModel(given, signal) : given
  if (options.panel === undefined) checkEvaluationSize(config)
  const say = (text: string) => new Screen(process.stderr, { live: false }).print(text)
  const panel = await openPanelFor(config, options, signal)
  for (const line of panel ? describeReplaced(panel) : []) say(line)
  await using player = await configuredPlayer(config, panel?.environment)
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
  const onProgress = ({ done, total }: Progress) =>
    screen.show([`${formatBar(done, total, 20)}  episode ${done}/${total}`])
  const work = (signal: AbortSignal): Promise<EvaluationReport | PanelReport> => {
    const setup = { ...model, ...who, temperature, rollout, seed, signal, onProgress }
    if (!panel) return evaluate({ ...setup, environment, tasks })
    return evaluateOnPanel({ ...setup, panel, repeats: options.repeats }, directory, options.out)
  }
  const report = await containingStrays(environment.name, signal, work, say)
  screen.clear()
  if (options.json) {
    const about = { model: directory, environment: environment.name, temperature }
    printJson({ ...about, ...report })
  } else {
    screen.print(`${directory} on ${environment.name}: ${describePlayed(report)}`)
    for (const line of evaluationTable(report, config)) screen.print(line)
    for (const line of "panel" in report ? panelLines(report) : []) screen.print(line)
    for (const failure of report.failures ?? []) screen.print(`Failed: ${describeReason(failure)}.`)
  }
  const why = unreadable(report, environment.name, rollout.maxCompletionTokens)
  if (why !== undefined) options.json ? say(why) : screen.print(why)
}

function describePlayed(report: EvaluationReport | PanelReport): string {
  if (!("panel" in report)) return `${report.episodes} held-out tasks, one episode each`
  const { panel, tasks, repeats } = report
  return `panel ${panel}, ${tasks} tasks, ${repeats === 1 ? "one episode" : `${repeats} episodes`} each`
}
