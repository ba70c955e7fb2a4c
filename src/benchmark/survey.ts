import type { Environment } from "../environment/environment.ts"
import { openEnvironment } from "../environment/open-environment.ts"
import { type EnvironmentName, environmentFields } from "../environment/registry.ts"
import { display } from "../options/display.ts"
import { GigpoError } from "../util/errors.ts"
import type { BenchmarkDefinition } from "./definition.ts"
import { located, speech } from "./options.ts"
import { type Play, playTasks } from "./plays.ts"
import { type BenchmarkTask, chooseTasks } from "./tasks.ts"

/** Options of `openBenchmark` that change no result. */
export interface OpenBenchmarkOptions {
  /** Number of concurrent plays in the verification of the environment. Default 32. */
  readonly concurrency?: number | undefined
  /** Signal that aborts the work. */
  readonly signal?: AbortSignal | undefined
}

/** World, tasks of the benchmark, and responses of the environment. */
export interface Survey {
  readonly environment: Environment
  readonly tasks: readonly BenchmarkTask[]
  readonly plays: readonly Play[]
}

/**
 * Opens an environment with the default prompt options, on which its tasks and responses do not depend, and plays its tasks.
 *
 * @param check - throws for wrong tasks, before they are played.
 */
export async function surveyTasks(
  { environment: name, tasks: choice }: Pick<BenchmarkDefinition, "environment" | "tasks">,
  options: Readonly<Record<string, unknown>>,
  { concurrency = 32, signal }: OpenBenchmarkOptions,
  check: (tasks: readonly BenchmarkTask[]) => Promise<void> = async () => {},
): Promise<Survey> {
  if (!(Number.isSafeInteger(concurrency) && concurrency >= 1))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The concurrency of a benchmark must be an integer from 1, not ${display(concurrency)}.`,
    )
  const fixed = located(Object.fromEntries(Object.entries(options).filter(([key]) => !speech.includes(key))))
  const environment = await open(name, fixed, signal)
  const tasks = await chooseTasks(environment, choice, fixed, signal)
  await check(tasks)
  return { environment, tasks, plays: await playTasks(environment, tasks, concurrency, signal) }
}

/** Opens an environment whose episodes can be played. */
export async function open(
  name: EnvironmentName,
  options: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
): Promise<Environment> {
  const takesSignal = Object.hasOwn(environmentFields[name] ?? {}, "signal")
  const given = signal && takesSignal ? { ...options, signal } : options
  const environment = await openEnvironment(name as string, given)
  if (typeof environment.start === "function") return environment
  throw new GigpoError(
    "BAD_CONFIG",
    `${name} has tasks but no episodes that can be played, so a benchmark cannot verify it. Choose another environment.`,
  )
}
