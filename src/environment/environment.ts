import type { Random } from "../util/random.ts"
import type { Memory } from "./memory/memory.ts"

/** One message of a chat, as chat templates take it. */
export interface Message {
  readonly role: "system" | "user" | "assistant"
  readonly content: string
}

/** What an episode shows at one moment. */
export interface Observation {
  /** What the prompt may show to the model. */
  readonly text: string
  /**
   * Identifies the state of the environment (not the history that led there). Steps of one group whose anchors are
   * equal form a step group: the whole of GiGPO's finer credit rests on it.
   */
  readonly anchor: string
  /** Actions that make sense here, where the environment can tell. */
  readonly actions?: readonly string[]
}

/** What came of one action. */
export interface StepResult {
  readonly observation: Observation
  /** Reward of this step; must be finite. */
  readonly reward: number
  /** The episode reached an end of its own (solved, lost). */
  readonly terminated: boolean
  /** The episode was cut off (step limit). */
  readonly truncated: boolean
  /**
   * Extra numbers; the last step's values count, and each is averaged over the episodes that have it. `success` (0 or 1) is
   * reported everywhere. One that is for a kind of task alone is named after it, `success/<kind>`. Names are short and
   * printable: they become keys of metrics.jsonl and lines on a terminal, so what comes from data is cleaned first.
   */
  readonly metrics?: Readonly<Record<string, number>>
}

/** One run of the environment, from its first observation to its end. Fresh and single use. */
export interface EnvironmentEpisode {
  readonly first: Observation
  step(action: string): Promise<StepResult>
  /** Closes what the episode opened: files, connections, processes. Left out where there is nothing to close. */
  [Symbol.asyncDispose]?(): Promise<void>
}

/** One past step, as prompts may show it. */
export interface Turn {
  readonly observation: Observation
  /** The model's whole reply. */
  readonly reply: string
  /** The action that `parse` read from it. */
  readonly action: string
}

/** Action that a completion was parsed into. */
export interface ParsedAction {
  /** What is handed to `step`; a reply that cannot be read should still give some harmless action here. */
  readonly action: string
  /** Whether the reply was readable. Invalid replies are penalised by the advantage estimator, not by the environment. */
  readonly valid: boolean
}

/** Knows what to do: replies that solve the task, for warm starts and tests. */
export interface Expert {
  /** The reply that a perfect policy would give now, or `undefined` where there is none. */
  reply(now: Observation, history: readonly Turn[]): string | undefined
}

/** Values beside the task with which an episode starts. */
export interface EpisodeContext {
  /** Aborted when the episode is no longer wanted (time limit, Ctrl-C). */
  readonly signal: AbortSignal
  /** The episode's own random numbers: keyed by the task and the member of the group. */
  readonly random: Random
}

/**
 * A world to act in, with the tasks it offers, the prompt the model is shown and the way its replies are read.
 * The training loop knows none of these. An episode must be a pure function of (task, actions): members of a group
 * get the same task and must see the same start.
 */
export interface Environment<Task = unknown> {
  readonly name: string
  /** Files that tasks are read from, by the option that names them. A resumed run refuses other contents, up to 64 MB a file. */
  readonly taskFiles?: Readonly<Record<string, string | undefined>> | undefined
  /** An endless or finite supply of tasks; the same `random` must give the same tasks. */
  tasks(split: "train" | "test", random: Random): Iterable<Task>
  start(task: Task, context: EpisodeContext): Promise<EnvironmentEpisode>
  /** The messages shown to the model at this step. */
  prompt(task: Task, history: readonly Turn[], now: Observation): Message[]
  /** What prompts tell of the past besides: it stands before the text of the last message. */
  readonly memory?: Memory | undefined
  /** Reads an action from the model's reply. Must not throw. */
  parse(reply: string, now: Observation): ParsedAction
  expert?(task: Task): Expert
}

/** Of an environment what an agent needs that plays by itself: its tasks, and a name for messages. */
export type OffersTasks<Task = unknown> = Pick<Environment<Task>, "name" | "tasks"> & Partial<Environment<Task>>
