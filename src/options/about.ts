// Description of a published algorithm. Each built-in estimator and loss carries its description; src/algorithms lists the others.

/** Parts of training that an algorithm can change, with their section titles in the order of docs/algorithms.md. */
export const changes = {
  credit: "Credit: how episodes become advantages",
  "step-groups": "Step groups: which steps are compared",
  loss: "Losses: what is minimised",
  tokens: "Weights of tokens",
  rollout: "Rollout: how episodes are played",
  prompt: "Memory: what prompts contain",
  curriculum: "Curriculum: order of tasks and starts over training",
  reward: "Reward",
  data: "Data and distillation",
  environment: "Environments and benchmarks",
  other: "Surveys, studies and systems",
} as const

/** Part of training that an algorithm changes: a key of `changes`. */
export type AlgorithmPart = keyof typeof changes

/** Statuses of implementation, with their meanings. */
export const statuses = {
  exact:
    "as in the paper or the authors' code, which the source names; tested numerically; the note names implementation choices",
  partial: "defined by the authors and implemented in part; the note names what is missing",
  interpreted: "an interpretation, because the definition is not public or known only from third parties",
  undefined: "not implemented: there is no public definition",
  "not implemented": "defined but not implemented, for the reason in the note",
  "not an algorithm": "a benchmark, a survey, a study or a system",
} as const

/** Status of an implementation: a key of `statuses`. */
export type AlgorithmStatus = keyof typeof statuses

/** Relation to GiGPO: GiGPO itself, a work that cites or extends it, a related method, or a common baseline. */
export type AlgorithmOrigin = "gigpo" | "successor" | "relative" | "baseline"

/** Input that an algorithm needs next to its settings; see `bring` of src/algorithms. */
export type Brought = "teacher" | "judge" | "pairs" | "episodes" | "module"

/** Description of an algorithm, next to its implementation if there is one. */
export interface About {
  /** Name of the algorithm as published. */
  readonly system: string
  readonly origin: AlgorithmOrigin
  /** Parts of training that the algorithm changes. The first decides the section in docs/algorithms.md. */
  readonly changes: readonly [AlgorithmPart, ...AlgorithmPart[]]
  /** Definition in one line. */
  readonly equation?: string
  /** Source of the definition: a paper, or the authors' code. */
  readonly source: string
  /** Implementation, as a path from the repository root. Default for a definition: the file of that name in the folder of its kind. */
  readonly file?: string
  /** Other files of the implementation. */
  readonly otherFiles?: readonly string[]
  /** Configuration keys that select the algorithm, as `--set` takes them. A definition adds the key for its name. */
  readonly set?: Readonly<Record<string, string | number | boolean | readonly string[]>>
  /** Built-in environments that provide what the algorithm needs. Default: all. */
  readonly environments?: readonly string[]
  /** Input that the user brings, which no setting replaces. Default: none. */
  readonly brings?: Brought
  /** Code that selects the algorithm, where a configuration file cannot. */
  readonly code?: string
  /** Status of the implementation in this package. */
  readonly status: AlgorithmStatus
  readonly note?: string
}
