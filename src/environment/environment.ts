import type { EncodedImage } from "../images/image.ts"
import type { Random } from "../util/random.ts"
import type { PromptMemory } from "./memory/memory.ts"

/** Message of a chat, as chat templates take it. */
export interface Message {
  /** Author of the message. */
  readonly role: "system" | "user" | "assistant"
  /** Text. In a message with images, U+FFFC marks the place of each one; `messageOf` writes such a content. */
  readonly content: string
  /** Images in the order of their places, for vision-language models. */
  readonly images?: readonly EncodedImage[]
}

/** Observation of an environment with the anchor of its state. */
export interface Observation {
  /** Text that the prompt may show to the model. */
  readonly text: string
  /**
   * Identifier of the state of the environment, independent of the history that led there. Steps of one group with equal anchors form a
   * step group, whose returns GiGPO compares.
   */
  readonly anchor: string
  /** Pictures of the state, which prompts may show to a vision-language model. Recorded, and shown by `gigpo view`. */
  readonly images?: readonly EncodedImage[]
  /** Admissible actions in this state, if the environment knows them. */
  readonly actions?: readonly string[]
}

/** Result of one environment step. */
export interface StepResult {
  /** Observation after the action. */
  readonly observation: Observation
  /** Reward of this step. Must be finite. */
  readonly reward: number
  /** Whether the episode ended by the rules of the environment (solved, lost). */
  readonly terminated: boolean
  /** Whether the episode was ended by a limit such as the maximum number of steps. */
  readonly truncated: boolean
  /**
   * Metrics of the episode by name. The values of the last step are reported, each averaged over the episodes that have it.
   * `success` (0 or 1) is the metric of the task; `success/<kind>` is the same for one kind of task. Names are printable and at most 100
   * characters long, because they become keys of metrics.jsonl and lines on a terminal. Clean names that come from data.
   */
  readonly metrics?: Readonly<Record<string, number>>
}

/** Episode of an environment, from its first observation to its end. For a single use. */
export interface EnvironmentEpisode {
  /** Observation of the start state. */
  readonly first: Observation
  /** Executes an action. */
  step(action: string): Promise<StepResult>
  /** Closes files, connections and processes that the episode opened. Optional. */
  [Symbol.asyncDispose]?(): Promise<void>
}

/** Past step of an episode, as prompts may show it. */
export interface PastStep {
  /** Observation before the action. */
  readonly observation: Observation
  /** Whole completion of the model. */
  readonly completion: string
  /** Action that `parse` read from the completion. */
  readonly action: string
}

/** Action that a completion was parsed into. */
export interface ParsedAction {
  /** Action for `step`. A completion that cannot be parsed should still give a harmless action. */
  readonly action: string
  /** Whether the completion could be parsed. The advantage estimator penalizes invalid completions; the environment does not. */
  readonly valid: boolean
}

/** Source of completions that solve a task, for supervised fine-tuning and tests. */
export interface Expert {
  /** Completion of an optimal policy for this observation, or `undefined` if the expert has none. */
  complete(now: Observation, history: readonly PastStep[]): string | undefined
}

/** Correct answer of a task, in the form in which a completion gives it. */
export interface GoldAnswer {
  /** Text of the completion before the answer, e.g. `<answer>`. */
  readonly before: string
  /** Text of the answer. */
  readonly text: string
}

/** Abort signal and random numbers of an episode. */
export interface EpisodeContext {
  /** Signal that is aborted when the episode is cancelled (time limit, Ctrl-C). */
  readonly signal: AbortSignal
  /** Random numbers of the episode, seeded by the task and the member of the group. */
  readonly random: Random
}

/**
 * Environment with its tasks, its prompts and its parser of completions. An episode must be a pure function of task and actions: the
 * members of a group get the same task and must start in the same state.
 */
export interface Environment<Task = unknown> {
  /** Name for messages and metrics. */
  readonly name: string
  /** Paths of the files that tasks are read from, by option. A resumed run rejects changed contents, up to 64 MB per file. */
  readonly taskFiles?: Readonly<Record<string, string | undefined>> | undefined
  /** Tasks of a split, finite or endless. Equal `random` must give equal tasks. */
  tasks(split: "train" | "test", random: Random): Iterable<Task>
  /** Starts an episode of a task. */
  start(task: Task, context: EpisodeContext): Promise<EnvironmentEpisode>
  /** Messages that the model gets at this step. */
  prompt(task: Task, history: readonly PastStep[], now: Observation): Message[]
  /** Prompt memory. Its text is inserted before the text of the last message. */
  readonly memory?: PromptMemory | undefined
  /** Parses a completion into an action. Must not throw. */
  parse(completion: string, now: Observation): ParsedAction
  /**
   * Regular expression that a valid completion to this observation matches as a whole, for constrained decoding
   * (`training.rollout.constrained`); undefined: any text. Only characters, classes, groups, `|` and repetitions. Optional.
   */
  completionPattern?(now: Observation): string | undefined
  /** Expert of a task. Optional. */
  expert?(task: Task): Expert
  /**
   * Verification score of an action in this state, from an oracle: 1 for an action of an optimal policy, 0 for another one, -1 for one
   * that cannot be executed or makes the task unsolvable. undefined if the oracle has none. Optional, for VPR (`oracleCandidates`).
   */
  verify?(task: Task, now: Observation, action: string): number | undefined | Promise<number | undefined>
  /** Correct answer of a task, undefined if there is none. Optional, for the information gain of turns (`informationGain`). */
  answer?(task: Task): GoldAnswer | undefined
}

/** Parts of an environment that an agent needs: tasks, and a name for messages. */
export type TaskProvider<Task = unknown> = Pick<Environment<Task>, "name" | "tasks"> & Partial<Environment<Task>>
