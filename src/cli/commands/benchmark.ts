import { Command, Option } from "commander"
import { type Benchmark, openBenchmark } from "../../benchmark/benchmark.ts"
import { createBenchmark } from "../../benchmark/create.ts"
import { shortDigest } from "../../benchmark/digest-text.ts"
import { benchmarkNames, describeBenchmark } from "../../benchmark/find.ts"
import type { EnvironmentName } from "../../environment/registry.ts"
import { GigpoError } from "../../util/errors.ts"
import { visible } from "../../util/visible.ts"
import { type ConfigArguments, commandLine, configCommand, setOption, trustOption, wholeNumber } from "../arguments.ts"
import { optionsFor, withoutAround } from "../benchmark-evaluation.ts"
import { loadConfig } from "../config/resolve.ts"
import { activity } from "../terminal/activity.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"
import { Screen } from "../terminal/screen.ts"
import { table } from "../terminal/table.ts"
import { benchmarkExport } from "./benchmark-export.ts"

export function benchmarkCommand(command: Command): Command {
  return command
    .description(
      "A benchmark is a named, versioned list of held-out tasks: the same on every machine and for every seed. Its digest covers the tasks, the " +
        "observations of the " +
        `environment and the prompts. To use one: "${commandLine("evaluate", "config.yaml", "--benchmark", "sokoban/6x6@1")}".`,
    )
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(createCommand())
    .addCommand(benchmarkExport())
}

function listCommand(): Command {
  return new Command("list")
    .summary("list the built-in benchmarks")
    .option("--json", "print the benchmarks as one JSON line")
    .action((options) => interruptible(() => listBenchmarks(options)))
}

async function listBenchmarks({ json = false }: { readonly json?: boolean }): Promise<void> {
  const benchmarks = await Promise.all(benchmarkNames.map(describeBenchmark))
  if (json) return void printJson(benchmarks)
  const rows = benchmarks.map(({ name, tasks, environment, about, places }) => [
    name,
    String(tasks.count),
    environment,
    places.length > 0 ? `${about}; needs ${places.map((place) => `environment.${place}`).join(", ")}` : about,
  ])
  const screen = new Screen(process.stdout, { live: false })
  for (const line of table([["BENCHMARK", "TASKS", "ENVIRONMENT", "WHAT"], ...rows], [1])) screen.print(line)
}

interface ShowArguments extends ConfigArguments {
  readonly config?: string
  readonly tasks?: boolean
  readonly json?: boolean
}

function showCommand(): Command {
  return new Command("show")
    .summary("describe a benchmark; with a configuration, check that its data matches")
    .argument("<benchmark>", "name or file of a benchmark")
    .option(
      "-c, --config <file>",
      "open the benchmark with the environment of a configuration and check that both match",
    )
    .addOption(setOption())
    .addOption(trustOption())
    .option("--tasks", "list the tasks with their keys; opens the benchmark")
    .option("--json", "print the benchmark as one JSON line")
    .action((benchmark, options) => interruptible((signal) => showBenchmark(benchmark, options, signal)))
}

async function showBenchmark(name: string, options: ShowArguments, signal: AbortSignal): Promise<void> {
  const { digests, ...definition } = await describeBenchmark(name)
  const screen = new Screen(process.stdout, { live: false })
  const given = async (file: string) =>
    optionsFor(definition, (await loadConfig(file, options.set, options)).environment)
  const opened =
    options.config !== undefined || options.tasks
      ? await opening(name, options.config === undefined ? {} : await given(options.config), signal)
      : undefined
  if (options.json) {
    const { keys: _, ...rest } = definition
    const tasks = options.tasks ? opened?.tasks : undefined
    printJson({ ...rest, known: digests, digests: opened?.digests, list: tasks })
    return
  }
  const rows = [
    ["benchmark", definition.name],
    ["what", definition.about],
    ["environment", definition.environment],
    ["options", JSON.stringify(definition.options)],
    ...(definition.places.length > 0
      ? [["needs", definition.places.map((place) => `environment.${place}`).join(", ")]]
      : []),
    ["tasks", String(definition.tasks.count)],
    ["responses", digests.environment],
    [
      "prompt",
      `${opened?.digests.prompt ?? digests.prompt}${opened && !opened.defaultPrompt ? "" : " (default options)"}`,
    ],
    ...(opened ? [["digest", opened.digests.benchmark]] : []),
  ]
  for (const line of table(rows)) screen.print(visible(line))
  for (const { key, task } of options.tasks ? opened!.tasks : [])
    screen.print(visible(`${key}  ${JSON.stringify(task)}`))
}

function opening(name: string, options: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Benchmark> {
  return activity.during(`opening the benchmark ${name}`, () => openBenchmark(name, options, { signal }))
}

interface CreateArguments extends ConfigArguments {
  readonly tasks?: number
  readonly out: string
  readonly name?: string
  readonly description?: string
  readonly overwrite?: boolean
}

function createCommand(): Command {
  return configCommand(new Command("create").summary("create a benchmark of the held-out tasks of a configuration"))
    .description(
      "Writes the held-out tasks of a configuration to a file of digests of the tasks and observations, without their data. An " +
        "evaluation with --benchmark <file> runs exactly these tasks, or reports what differs.",
    )
    .requiredOption("-o, --out <file>", "file to write; its name ends in .json")
    .addOption(
      new Option("--tasks <count>", "number of tasks, from the first; default: training.evaluation.tasks").argParser(
        wholeNumber(1, 1_000_000),
      ),
    )
    .option("--name <name>", "name with a version; default: name of the file and @1")
    .option("--description <text>", "one-line description")
    .option("--overwrite", "replace an existing file")
    .action((file, options) => interruptible((signal) => createBenchmarkFile(file, options, signal)))
}

async function createBenchmarkFile(file: string, given: CreateArguments, signal: AbortSignal): Promise<void> {
  const { environment, training } = await loadConfig(file, given.set, given)
  const { out, name, description, overwrite, tasks = training.evaluation.tasks } = given
  const { name: own, ...options } = withoutAround(environment)
  if (typeof own !== "string")
    throw new GigpoError("BAD_CONFIG", "Benchmarks support built-in environments only; not a module.")
  const how = { environment: own as EnvironmentName, options, tasks, name, description, overwrite, signal }
  const benchmark = await activity.during(`creating a benchmark of ${tasks} tasks of ${own}`, () =>
    createBenchmark(out, how),
  )
  const screen = new Screen(process.stdout, { live: false })
  screen.print(
    visible(
      `${benchmark.name}: ${benchmark.tasks.count} tasks, environment ${shortDigest(benchmark.digests.environment)}, in ${out}`,
    ),
  )
}
