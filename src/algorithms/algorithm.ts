// What an entry of the table of algorithms says. The table is plain data: the command `gigpo algorithms`, docs/algorithms.md, the tests and
// bench:algorithms are all made of it.

/** What an algorithm changes about training, in the order in which they are told, with the title of each. */
export const changes = {
  credit: "Credit: how episodes become advantages",
  keys: "Step keys: which steps are compared",
  loss: "Losses: what is minimised",
  tokens: "Weights of tokens",
  rollout: "Rollout: how episodes are played",
  prompt: "Memory: what prompts tell",
  curriculum: "Curriculum: what is played as training goes on",
  reward: "Reward",
  data: "Data and distillation",
  environment: "Environments and benchmarks",
  other: "Surveys, studies and systems",
} as const

export type Change = keyof typeof changes

/** How far one is there, with what that means. */
export const standings = {
  exact: "its public definition, held to numbers: what is our reading beside it the note says",
  reading: "our reading, where a definition is not public or comes from others than the authors",
  undefined: "not defined in public, and absent",
  absent: "defined, and absent for the reason that the note gives",
  images: "needs more than text, and is absent",
  "not an algorithm": "a benchmark, a survey, a study or a system: nothing that a training could be asked for",
} as const

export type Standing = keyof typeof standings

/** Where it comes from: it is GiGPO, cites or extends it, is another method of the kind, or is what all are compared with. */
export type Origin = "gigpo" | "successor" | "relative" | "baseline"

export interface Algorithm {
  readonly system: string
  readonly origin: Origin
  /** The first is where it stands. */
  readonly changes: readonly [Change, ...Change[]]
  /** In one line. */
  readonly equation?: string
  /** Where the definition, or what is known of one, was read. */
  readonly source: string
  /** Of ours, from the repository's root. */
  readonly file?: string
  /** What a configuration sets to ask for it: whole keys, as `--set` takes them. */
  readonly set?: Readonly<Record<string, string | number | boolean | readonly string[]>>
  /** What is handed to `train` besides, where no configuration can ask for it. */
  readonly code?: string
  readonly standing: Standing
  readonly note?: string
}
