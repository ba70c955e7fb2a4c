import type { Completion, SampleRequest } from "../engine/engine.ts"
import type { Message, Observation, ParsedAction, Turn } from "../environment/environment.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import type { Random } from "../util/random.ts"
import type { Stateful } from "../util/state.ts"
import type { Candidate, Episode, ScoredCandidate } from "./episode.ts"

// The seams of a rollout, used in training only. Each is given what is recorded, random numbers keyed by what it is asked about, and
// a signal, so that what it decides depends on nothing else and a run can be repeated and resumed.

/** Values that every rollout hook may use. */
export interface HookContext {
  readonly moment: TrainingProgress
  /** Keyed by seed, iteration, task, member and step, as far as they apply. */
  readonly random: Random
  readonly signal: AbortSignal
}

/** A reply as it is recorded. */
export interface SampledReply extends Completion {
  /**
   * [tokens] 1 for a token that a hook put there and nobody sampled; absent where there is none. Such tokens are part of the reply and weigh
   * nothing in the policy's loss.
   */
  readonly forced?: Uint8Array
}

/** A turn that is about to be played. */
export interface TurnContext<Task = unknown> {
  readonly task: Task
  /** The step's number in its episode, from 0. */
  readonly index: number
  readonly observation: Observation
  readonly history: readonly Turn[]
  /** What was sampled at the episode's steps so far. */
  readonly earlier: readonly SampledReply[]
  readonly messages: readonly Message[]
  readonly tokenizer: ChatCodec
  readonly vocabularySize: number
}

/** A reply that is about to be sampled. */
export interface SamplingTurn<Task = unknown> extends TurnContext<Task> {
  /** Replies that were rejected before this one. */
  readonly attempt: number
  readonly request: SampleRequest
  /** What the policy says to a request: this one, or one that is made of it, whose key is then another. */
  sample(request: SampleRequest): Promise<Completion>
}

/** A reply that was sampled and is not acted on yet. */
export interface SampledTurn<Task = unknown> extends TurnContext<Task> {
  /** Replies that were rejected before this one. */
  readonly attempt: number
  readonly completion: SampledReply
  /** The reply as text, and what `parse` made of it. */
  readonly text: string
  readonly parsed: ParsedAction
}

/**
 * What becomes of a sampled turn. A fork acts on the reply, too, and has `into` - 1 further episodes begin from the state before it, with
 * replies of their own: they join the group behind its members, as far as `rollout.maxForks` lets them.
 */
export type TurnDecision =
  | { readonly kind: "accept" }
  /** `hint` stands in the prompts of the further attempts, in place of that of `begin`. */
  | { readonly kind: "resample"; readonly hint?: string | undefined }
  | { readonly kind: "fork"; readonly into: number }

/** Several replies to one prompt, of which one is acted on. */
export interface Candidates {
  readonly count: number
  /** How good a reply is, by an oracle, say: a finite number. */
  score(candidate: Candidate): number | Promise<number>
  /** The number of the one that is acted on. Default: uniformly one of the best. */
  choose?(candidates: readonly ScoredCandidate[], random: Random): number | Promise<number>
}

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
  /**
   * Learns from the episode as from one that the policy played without the hint: rows hold the prompt without it, with the
   * log-probabilities that replies were sampled with, and say so to the loss (`Span.offPolicy`). Default false.
   */
  readonly offPolicy?: boolean | undefined
}

/** The episodes of one task. */
export interface Group<Task = unknown> {
  readonly task: Task
  /** The task's number in its iteration, from 0. */
  readonly index: number
  readonly episodes: readonly Episode[]
}

/** Values with which a hook may guide a group. */
export interface GuideContext extends HookContext {
  /**
   * Plays the group's task once more, with as many episodes as a group has, all from this start and by the hooks of turns (`candidates`,
   * `sample`, `onTurn`). One rollout after the other.
   */
  play(start: EpisodeStart): Promise<readonly Episode[]>
}

/** What a hook throws ends the rollout. */
export interface RolloutHooks<Task = unknown> extends Partial<Stateful> {
  begin?(task: Task, context: HookContext): EpisodeStart | undefined | Promise<EpisodeStart | undefined>
  /** Asked once a turn: how many replies are sampled for it and what each is worth. By default one is, and nobody scores it. */
  candidates?(
    situation: TurnContext<Task>,
    context: HookContext,
  ): Candidates | undefined | Promise<Candidates | undefined>
  /** How a reply is sampled, in one request or several: the whole reply, of at most `maxTokens`. */
  sample?(turn: SamplingTurn<Task>, context: HookContext): Promise<SampledReply>
  /**
   * Whether a reply is acted on or sampled again. After `rollout.maxResamples` replies to one prompt were rejected the next is acted on
   * whatever is said of it. A branch is asked about its first reply as well, but not forked there once more.
   */
  onTurn?(turn: SampledTurn<Task>, context: HookContext): TurnDecision | Promise<TurnDecision>
  /**
   * The episodes that stand for a group once it is played, which may come of further rollouts of its task; undefined leaves it as it
   * is. Called when all groups of a round are there, and the calls run side by side.
   */
  guide?(
    group: Group<Task>,
    context: GuideContext,
  ): readonly Episode[] | undefined | Promise<readonly Episode[] | undefined>
  /**
   * The group's episodes with other rewards: judges, rewards of a group. As many as there were, in their order; returns follow from
   * the rewards. Called when all groups of a round are there, in the order of tasks, and the calls run side by side.
   */
  score?(group: Group<Task>, context: HookContext): readonly Episode[] | Promise<readonly Episode[]>
  /**
   * Whether a group is learned from. One that is dropped is replaced by the next task's, in at most `rollout.maxRefillRounds` rounds. Called
   * for the scored groups of a round in the order of tasks, one after the other.
   */
  keep?(group: Group<Task>, context: HookContext): boolean | Promise<boolean>
  /** Told of all groups of an iteration, dropped ones too, in the order of tasks: where a hook changes what it remembers. */
  played?(groups: readonly Group<Task>[], context: HookContext): void | Promise<void>
}

/** Where tasks come from. The default is the environment's own order; curricula replace it. */
export interface TaskSource<Task = unknown> extends Partial<Stateful> {
  /**
   * The next task, or undefined where there are no more in this iteration. `index` counts from 0 in every iteration. Asked when a
   * task is needed, for one after the other.
   */
  next(context: HookContext & { readonly index: number }): Task | undefined | Promise<Task | undefined>
}
