import type { EnvironmentName } from "../environment/registry.ts"

/** Definition of a benchmark: environment, tasks and digests. Plain data, in the package or in a file. */
export interface BenchmarkDefinition {
  /** Name with version: "households/unseen@1". */
  readonly name: string
  /** Description in one line. */
  readonly about: string
  /** Name of the environment. */
  readonly environment: EnvironmentName
  /** Options of the environment that determine tasks and rules, where they differ from the defaults. */
  readonly options: Readonly<Record<string, unknown>>
  /** Options with paths of data, which a configuration must give. */
  readonly places: readonly string[]
  /** Choice of tasks, with their number `count`. */
  readonly tasks: TaskChoice & { readonly count: number }
  /** Digests that an opened benchmark must have. */
  readonly digests: KnownDigests
  /** Keys of the tasks, for a benchmark in a file. */
  readonly keys?: readonly string[] | undefined
}

/** Choice of a benchmark's tasks among the held-out tasks of an environment. */
export interface TaskChoice {
  /** Whether all tasks are sorted by their JSON, instead of the order of the environment. */
  readonly sorted?: true
  /** Whether tasks with the first observation of an earlier task are left out. */
  readonly distinct?: true
}

/** SHA-256 in hexadecimal digits. */
export interface KnownDigests {
  readonly tasks: string
  readonly environment: string
  /** Digest of the prompts with default options. */
  readonly prompt: string
}
