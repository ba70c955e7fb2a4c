import { basename } from "node:path"
import type { EnvironmentName } from "../environment/registry.ts"
import { checkNewFile } from "../files/check-new-file.ts"
import { checkArguments, checkPath, type KeysOf } from "../options/arguments.ts"
import { display } from "../options/display.ts"
import { isObject } from "../options/read.ts"
import { GigpoError } from "../util/errors.ts"
import { isBenchmarkName, writeBenchmarkFile } from "./benchmark-file.ts"
import type { BenchmarkDefinition } from "./definition.ts"
import { environmentDigest, promptDigest, tasksDigest } from "./digest.ts"
import { benchmarkNames } from "./find.ts"
import { environmentOptions, pick, places, plainOptions } from "./options.ts"
import { type OpenBenchmarkOptions, surveyTasks } from "./survey.ts"

/** Options of `createBenchmark`. */
export interface CreateBenchmarkOptions extends OpenBenchmarkOptions {
  /** Name of the environment. */
  readonly environment: EnvironmentName
  /** Options of the environment. Default: none. */
  readonly options?: Readonly<Record<string, unknown>> | undefined
  /** Number of held-out tasks, from the first on. */
  readonly tasks: number
  /** Name with version. Default: the name of the file without .benchmark.json, and @1. */
  readonly name?: string | undefined
  /** Description in one line. */
  readonly description?: string | undefined
  /** Whether to replace an existing file. Default false. */
  readonly overwrite?: boolean | undefined
}

const keys: KeysOf<CreateBenchmarkOptions> = {
  environment: true,
  options: true,
  tasks: true,
  name: true,
  description: true,
  overwrite: true,
  concurrency: true,
  signal: true,
}

/**
 * Writes the file of a custom benchmark: the held-out tasks of an environment and digests of its responses, so that evaluations elsewhere play the same
 * tasks or are rejected. Data is not copied.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid argument, `FILE_EXISTS` for an existing file, `BAD_CONFIG` for an environment with fewer tasks or
 * options that cannot be written; errors of the environment.
 */
export async function createBenchmark(
  path: string,
  given: CreateBenchmarkOptions,
): Promise<Required<BenchmarkDefinition>> {
  checkPath("createBenchmark: path", path)
  checkArguments("createBenchmark", given, keys)
  const { environment: name, options = {}, tasks: count, overwrite = false, ...how } = given
  const benchmark = how.name ?? `${basename(path).replace(/(\.benchmark)?\.json$/, "")}@1`
  if (!isBenchmarkName(benchmark))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `${display(benchmark)} must be the name of a benchmark with its version, for example nq@1.`,
    )
  if (benchmarkNames.includes(benchmark))
    throw new GigpoError("BAD_ARGUMENT", `${benchmark} is a built-in benchmark; use another name.`)
  if (!(Number.isSafeInteger(count) && count > 0))
    throw new GigpoError("BAD_ARGUMENT", `createBenchmark: tasks must be an integer from 1, not ${display(count)}.`)
  if (!isObject(options)) throw new GigpoError("BAD_ARGUMENT", "createBenchmark: options must be an object.")
  if (!path.endsWith(".json"))
    throw new GigpoError("BAD_ARGUMENT", `${path}: the name of a benchmark file must end in .json.`)
  await checkNewFile(path, overwrite)
  const fixed = Object.fromEntries(
    Object.entries(environmentOptions(options)).filter(([, value]) => value !== undefined),
  )
  const plain = plainOptions(fixed)
  const code = Object.keys(fixed).find((key) => !Object.hasOwn(plain, key))
  if (code !== undefined)
    throw new GigpoError(
      "BAD_CONFIG",
      `${name}: the option ${code} cannot be written to a file; leave it out to create a benchmark.`,
    )
  const { signal, concurrency } = how
  const { environment, tasks, plays } = await surveyTasks({ environment: name, tasks: { count } }, options, {
    signal,
    concurrency,
  })
  if (tasks.length < count)
    throw new GigpoError("BAD_CONFIG", `${name} has ${tasks.length} held-out tasks, not ${count}; lower tasks.`)
  const definition = {
    name: benchmark,
    about: how.description ?? `${count} held-out tasks of ${name}`,
    environment: name,
    options: plain,
    places: Object.keys(pick(options, places)).filter((key) => options[key] !== undefined),
    tasks: { count },
    digests: {
      tasks: await tasksDigest(tasks),
      environment: await environmentDigest(tasks, plays, signal),
      prompt: await promptDigest(environment, plays, signal),
    },
    keys: tasks.map(({ key }) => key),
  }
  await writeBenchmarkFile(path, definition)
  return definition
}
