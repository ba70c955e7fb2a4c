import type { Command } from "commander"
import { evaluate } from "../../training/evaluate.ts"
import type { EvaluationReport } from "../../training/options.ts"
import { type ConfigArguments, configCommand } from "../arguments.ts"
import { loadConfig } from "../config/resolve.ts"
import { configuredPlayer, openPlayer } from "../model.ts"
import { describeReason } from "../terminal/failures.ts"
import { formatBar, formatNumber } from "../terminal/format.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"
import { containingStrays } from "../terminal/strays.ts"
import { describeSuccess } from "../terminal/training-view.ts"

interface EvaluateArguments extends ConfigArguments {
  readonly model?: string
  readonly json?: boolean
}

export function evaluateCommand(): Command {
  return configCommand("evaluate", "measure how often a model succeeds at held-out tasks")
    .description(
      "Plays one episode of each held-out task (training.evaluation.tasks) and says how many were solved, with the 95 % " +
        "interval of that share. The same seed gives the same result.",
    )
    .option("-m, --model <directory>", "model folder to evaluate instead of the configured one, e.g. a run's model")
    .option("--json", "print the result as one JSON line")
    .action((file, options) => interruptible((signal) => runEvaluate(file, options, signal)))
}

async function runEvaluate(file: string, options: EvaluateArguments, signal: AbortSignal): Promise<void> {
  const config = await loadConfig(file, options.set)
  await using player = await configuredPlayer(config)
  const { environment } = player
  const directory = options.model ?? config.model
  await using model = await openPlayer(config, signal, directory)
  const screen = new Screen(process.stdout, options.json ? { live: false } : {})
  const {
    evaluation: { tasks, temperature },
    rollout,
  } = config.training
  const work = (signal: AbortSignal) =>
    evaluate({
      ...model,
      ...player,
      tasks,
      temperature,
      rollout,
      seed: config.seed,
      signal,
      onProgress: ({ done, total }) => screen.show([`${formatBar(done, total, 20)}  episode ${done}/${total}`]),
    })
  const say = (text: string) => new Screen(process.stderr, { live: false }).print(text)
  const report = await containingStrays(environment.name, signal, work, say)
  screen.clear()
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ model: directory, environment: environment.name, ...report })}\n`)
  } else {
    screen.print(`${directory} on ${environment.name}: ${report.episodes} held-out tasks, one episode each`)
    const rows = table(report)
    const width = Math.max(16, ...rows.map(([name]) => name.length + 2))
    for (const [name, value] of rows) screen.print(`  ${name.padEnd(width)}${value}`)
    for (const failure of report.failures ?? []) screen.print(`Failed: ${describeReason(failure)}.`)
  }
}

function table(report: EvaluationReport): [name: string, value: string][] {
  const { success: _, ...metrics } = report.metrics
  return [
    ["success", describeSuccess(report)],
    ["return", formatNumber(report.meanReturn)],
    ["steps", formatNumber(report.meanSteps)],
    ["failed", String(report.failed)],
    ...Object.entries(metrics).map(([name, value]): [string, string] => [name, formatNumber(value)]),
  ]
}
