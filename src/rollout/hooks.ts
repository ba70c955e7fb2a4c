import type { Completion } from "../engine/engine.ts"
import type { Message, Observation, ParsedAction, Turn } from "../environment/environment.ts"
import type { Moment } from "../options/schedule.ts"
import type { Random } from "../random.ts"
import type { Stateful } from "../state.ts"
import type { Episode } from "./episode.ts"

// The seams of a rollout, used in training only. Each is given what is recorded, random numbers keyed by what it is asked about, and
// a signal, so that what it decides depends on nothing else and a run can be repeated and resumed.

export interface HookContext {
  readonly moment: Moment
  /** Keyed by seed, iteration, task, member and step, as far as they apply. */
  readonly random: Random
  readonly signal: AbortSignal
}

/** A reply that was sampled and is not acted on yet. */
export interface SampledTurn<Task = unknown> {
  readonly task: Task
  /** The step's number in its episode, from 0. */
  readonly index: number
  /** Replies that were rejected before this one. */
  readonly attempt: number
  readonly observation: Observation
  readonly history: readonly Turn[]
  readonly messages: readonly Message[]
  readonly completion: Completion
  /** The reply as text, and what `parse` made of it. */
  readonly text: string
  readonly parsed: ParsedAction
}

/** What becomes of a sampled turn. Forks and candidates will join this union. */
export type TurnDecision = { readonly kind: "accept" } | { readonly kind: "resample" }

/** Where an episode starts and how long it may be. */
export interface EpisodeStart {
  /** Instead of `rollout.maxSteps`. The actions of `replay` do not count. */
  readonly maxSteps?: number | undefined
  /**
   * Actions that are taken before the policy plays. They are told as history and are no steps: nothing is learned from them, and
   * their rewards are in no return. Where they end the episode, it has no steps.
   */
  readonly replay?: readonly string[] | undefined
  /** A text that is added to the last message of every prompt, after an empty line. */
  readonly hint?: string | undefined
}

/** The episodes of one task. */
export interface Group<Task = unknown> {
  readonly task: Task
  /** The task's number in its iteration, from 0. */
  readonly index: number
  readonly episodes: readonly Episode[]
}

/** What a hook throws ends the rollout. */
export interface RolloutHooks<Task = unknown> extends Partial<Stateful> {
  begin?(task: Task, context: HookContext): EpisodeStart | undefined | Promise<EpisodeStart | undefined>
  /**
   * Whether a reply is acted on or sampled again. After `rollout.resamples` replies to one prompt were rejected the next is acted on
   * whatever is said of it.
   */
  onTurn?(turn: SampledTurn<Task>, context: HookContext): TurnDecision | Promise<TurnDecision>
  /**
   * The group's episodes with other rewards: judges, rewards of a group. As many as there were, in their order; returns follow from
   * the rewards. Called when all groups of a round are there, in the order of tasks, and the calls run side by side.
   */
  score?(group: Group<Task>, context: HookContext): readonly Episode[] | Promise<readonly Episode[]>
  /**
   * Whether a group is learned from. One that is dropped is replaced by the next task's, in at most `rollout.refills` rounds. Called
   * for the scored groups of a round in the order of tasks, one after the other.
   */
  keep?(group: Group<Task>, context: HookContext): boolean | Promise<boolean>
}

/** Where tasks come from. The default is the environment's own order; curricula replace it. */
export interface TaskSource<Task = unknown> extends Partial<Stateful> {
  /**
   * The next task, or undefined where there are no more in this iteration. `index` counts from 0 in every iteration. Asked when a
   * task is needed, for one after the other.
   */
  next(context: HookContext & { readonly index: number }): Task | undefined | Promise<Task | undefined>
}
