import type { EnvironmentName } from "../environment/registry.ts"

/** What a panel is: which tasks of which world, and what they come to. Plain data, in the package or in a file. */
export interface PanelDefinition {
  /** With the version behind an @: "households/unseen@1". */
  readonly name: string
  /** A line that tells what it is. */
  readonly about: string
  readonly environment: EnvironmentName
  /** The options that make the world, where they differ from the environment's defaults. */
  readonly options: Readonly<Record<string, unknown>>
  /** Options that say where its data is, which a configuration must give. */
  readonly places: readonly string[]
  readonly tasks: TaskChoice & { readonly count: number }
  readonly digests: KnownDigests
  /** The tasks' keys, where the panel is a file. */
  readonly keys?: readonly string[] | undefined
}

/** Which of an environment's held-out tasks are a panel's. */
export interface TaskChoice {
  /** In the order of their JSON, in place of the environment's: of all that there are. */
  readonly sorted?: true
  /** Tasks whose first observation was there before are left out, for worlds that repeat themselves. */
  readonly distinct?: true
}

/** SHA-256 in hexadecimal digits. */
export interface KnownDigests {
  readonly tasks: string
  readonly world: string
  /** With the default options of how the agent is spoken to. */
  readonly prompt: string
}
