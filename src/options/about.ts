// Description of a published algorithm. Each shipped estimator and loss carries its own; src/algorithms lists the others.

/** What an algorithm changes about training, in the order of docs/algorithms.md, with the title of each section. */
export const changes = {
  credit: "Credit: how episodes become advantages",
  keys: "Step keys: which steps are compared",
  loss: "Losses: what is minimised",
  tokens: "Weights of tokens",
  rollout: "Rollout: how episodes are played",
  prompt: "Memory: what prompts tell",
  curriculum: "Curriculum: order of tasks and starts over training",
  reward: "Reward",
  data: "Data and distillation",
  environment: "Environments and benchmarks",
  other: "Surveys, studies and systems",
} as const

/** Key of `changes`: what an algorithm changes about training. */
export type Change = keyof typeof changes

/** How far an algorithm is implemented, with the meaning of each. */
export const standings = {
  exact: "its public definition, held to numbers: what is our reading beside it the note says",
  reading: "our reading, where a definition is not public or comes from others than the authors",
  undefined: "not defined in public, and absent",
  absent: "defined, and absent for the reason that the note gives",
  images: "needs more than text, and is absent",
  "not an algorithm": "a benchmark, a survey, a study or a system: nothing that a training could be asked for",
} as const

/** Status of an implementation: a key of `standings`. */
export type Standing = keyof typeof standings

/** Relation to GiGPO: GiGPO itself, a work that cites or extends it, another method of the kind, or a common baseline. */
export type Origin = "gigpo" | "successor" | "relative" | "baseline"

/** Description of an algorithm, beside its implementation where there is one. */
export interface About {
  /** Name of the algorithm as published. */
  readonly system: string
  readonly origin: Origin
  /** Parts of training that it changes; the first decides its section in docs/algorithms.md. */
  readonly changes: readonly [Change, ...Change[]]
  /** Definition in one line. */
  readonly equation?: string
  /** Where the definition was read: a paper, or the authors' code. */
  readonly source: string
  /** Implementation, from the repository's root. Default for a definition: the file of its name in its folder. */
  readonly file?: string
  /** Configuration keys that select it, as `--set` takes them. A definition adds the key of its own name. */
  readonly set?: Readonly<Record<string, string | number | boolean | readonly string[]>>
  /** Code that selects it, where no configuration can. */
  readonly code?: string
  readonly standing: Standing
  readonly note?: string
}
