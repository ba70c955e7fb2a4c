import { isDeepStrictEqual } from "node:util"
import type { Environment } from "../environment/environment.ts"
import { environmentFields } from "../environment/registry.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import { checkResponses, checkTasks } from "./check.ts"
import type { BenchmarkDefinition } from "./definition.ts"
import { benchmarkDigests, environmentDigest, promptDigest } from "./digest.ts"
import type { BenchmarkDigests } from "./evaluation-file.ts"
import { describeBenchmark } from "./find.ts"
import { withTasks } from "./fixed-tasks.ts"
import { limits, located, pick, retrieverOptions, speech, training } from "./options.ts"
import { withKinds } from "./plays.ts"
import { type OpenBenchmarkOptions, open, surveyTasks } from "./survey.ts"
import type { BenchmarkTask } from "./tasks.ts"

export type { OpenBenchmarkOptions } from "./survey.ts"

/** Opened benchmark, whose digests have been verified. */
export interface Benchmark<Task = unknown> {
  /** Name with version: "households/unseen@1". */
  readonly name: string
  /** Tasks in the order of the benchmark. */
  readonly tasks: readonly BenchmarkTask<Task>[]
  /** Digests of environment, prompts and benchmark. */
  readonly digests: BenchmarkDigests
  /** Whether the prompts are those of the environment's default options. */
  readonly defaultPrompt: boolean
  /** Environment whose held-out tasks are those of the benchmark. Its random numbers are keyed by benchmark and task. */
  readonly environment: Environment<Task>
  /** Options that the environment was opened with. */
  readonly options: Readonly<Record<string, unknown>>
  /** Names of given options that the benchmark replaces by its own values. */
  readonly replaced: readonly string[]
}

const optionKeys: KeysOf<OpenBenchmarkOptions> = { concurrency: true, signal: true }

/**
 * Opens a benchmark and verifies its digests by playing its tasks, so that tasks and environment are the same everywhere.
 *
 * @param benchmark - name of a built-in benchmark ("households/unseen@1"), or path of a file from `createBenchmark`.
 * @param options - options of the environment, as in a configuration. Those of prompts, data paths and limits of the machine are used; the others
 * determine tasks and rules, which the benchmark sets (`replaced`).
 * @throws GigpoError `BAD_ARGUMENT` for an unknown benchmark, `BAD_CONFIG` for an invalid option, `BAD_DATA` for data or an environment with other
 * digests.
 */
export async function openBenchmark(
  benchmark: string,
  options: Readonly<Record<string, unknown>> = {},
  how: OpenBenchmarkOptions = {},
): Promise<Benchmark> {
  checkArguments("openBenchmark", options)
  checkArguments("openBenchmark", how, optionKeys)
  const definition = await describeBenchmark(benchmark)
  const { opened, replaced } = settle(definition, options)
  const survey = await surveyTasks(definition, opened, how, (chosen) => checkTasks(definition, chosen))
  const { tasks, plays } = survey
  const responses = await environmentDigest(tasks, plays, how.signal)
  checkResponses(definition, responses)
  const isUsual = Object.keys(opened).every((key) => !speech.includes(key))
  const environment = isUsual ? survey.environment : await open(definition.environment, opened, how.signal)
  const prompt = await promptDigest(environment, plays, how.signal)
  const { name } = definition
  const described = withKinds(tasks, plays)
  const digests = await benchmarkDigests(responses, prompt)
  const defaultPrompt = prompt === definition.digests.prompt
  const own = withTasks(name, environment, described)
  return { name, tasks: described, digests, defaultPrompt, environment: own, options: opened, replaced }
}

/** Options for the environment of a benchmark, and names of the given options that the benchmark replaces. */
function settle(definition: BenchmarkDefinition, given: Readonly<Record<string, unknown>>) {
  const { environment, name, options } = definition
  const missing = definition.places.find((place) => given[place] === undefined)
  if (missing !== undefined)
    throw new GigpoError(
      "BAD_CONFIG",
      `The benchmark ${name} needs the option ${missing} of ${environment}, the location of its data.`,
    )
  const taken = [...speech, ...limits, ...definition.places, ...(definition.places.length > 0 ? retrieverOptions : [])]
  const fields = environmentFields[environment]!
  const unknown = Object.keys(given).filter((key) => !Object.hasOwn(fields, key))
  // Unknown options are passed on, so that the environment rejects them with its own message.
  const kept = Object.entries(pick(given, [...taken, ...unknown])).filter(([, value]) => value !== undefined)
  const opened = located({ ...Object.fromEntries(kept), ...options })
  const usual = (key: string) => (fields[key] as { readonly fallback?: unknown }).fallback
  const differs = (key: string) => !isDeepStrictEqual(given[key], options[key] ?? usual(key))
  const set = Object.keys(given).filter(
    (key) => given[key] !== undefined && ![...taken, ...unknown, ...training].includes(key),
  )
  return { opened, replaced: set.filter(differs) }
}
