import type { Completion, SampleRequest, Sampler, Trainable } from "../engine/engine.ts"
import type { Environment, Message, Observation, ParsedAction, PastStep } from "../environment/environment.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import type { Random } from "../util/random.ts"
import type { Stateful } from "../util/state.ts"
import type { Candidate, Episode, ScoredCandidate } from "./episode.ts"

// Hooks of a rollout, used in training only. Hooks receive recorded data, random numbers keyed by the place of the call, and a signal. A hook
// should depend on nothing else, so that a run can be repeated and resumed.

/** Context of a hook call. */
export interface HookContext {
  /** Progress of the run. */
  readonly progress: TrainingProgress
  /** Random numbers, keyed by seed, iteration, task, member and turn, as far as they apply. */
  readonly random: Random
  /** Signal that aborts the rollout or the episode. */
  readonly signal: AbortSignal
  /** Environment that is played; undefined if an agent plays. */
  readonly environment?: Environment | undefined
  /** Policy that plays. In a training run it also computes log-probabilities. */
  readonly policy?: (Sampler & Partial<Pick<Trainable, "logProbs">>) | undefined
  /** Tokenizer of the model. */
  readonly tokenizer?: ChatCodec | undefined
}

/** Completion with marks of forced tokens. */
export interface SampledCompletion extends Completion {
  /**
   * 1 for forced tokens, which a hook inserted and the policy did not sample, [tokens]. Absent if there are none. Forced tokens are part of
   * the completion and have weight 0 in the policy loss.
   */
  readonly forced?: Uint8Array
}

/** Turn (step of the episode) before its completion is sampled. */
export interface TurnContext<Task = unknown> {
  /** Task of the episode. */
  readonly task: Task
  /** Index of the turn in the episode, from 0. */
  readonly index: number
  /** Observation before the action. */
  readonly observation: Observation
  /** Earlier turns. */
  readonly history: readonly PastStep[]
  /** Completions of the earlier turns. */
  readonly completions: readonly SampledCompletion[]
  /** Messages of the prompt. */
  readonly messages: readonly Message[]
  /** Tokenizer of the model. */
  readonly tokenizer: ChatCodec
  /** Number of token ids. */
  readonly vocabularySize: number
}

/** Turn whose completion `hooks.sample` samples. */
export interface SamplingTurn<Task = unknown> extends TurnContext<Task> {
  /** Number of rejected completions of this turn. */
  readonly attempt: number
  /** Request for the whole completion. */
  readonly request: SampleRequest
  /** Samples a completion from the policy, for this request or one derived from it with another key. */
  sample(request: SampleRequest): Promise<Completion>
}

/** Turn with a sampled completion, before its action is executed. */
export interface SampledTurn<Task = unknown> extends TurnContext<Task> {
  /** Number of rejected completions of this turn. */
  readonly attempt: number
  /** The sampled completion. */
  readonly completion: SampledCompletion
  /** Text of the completion. */
  readonly text: string
  /** Result of `parse` for the completion. */
  readonly parsed: ParsedAction
}

/**
 * Decision about a sampled turn:
 *
 * - `accept`: the action is executed.
 * - `resample`: the completion is rejected and sampled again. `hint` replaces the hint of `start` in the prompts of further attempts.
 * - `branch`: the action is executed, and `branchingFactor` - 1 branches start from the state before it with their own completions. Branches are added to the
 *   group after its members, within `rollout.maxBranches`.
 */
export type TurnDecision =
  | { readonly kind: "accept" }
  | { readonly kind: "resample"; readonly hint?: string | undefined }
  | { readonly kind: "branch"; readonly branchingFactor: number }

/** Candidates of a turn: several completions of one prompt, of which one is acted on. */
export interface CandidateSet {
  /** Number of completions. */
  readonly count: number
  /** Returns the score of a completion, for example from an oracle: a finite number, larger is better. */
  score(candidate: Candidate): number | Promise<number>
  /** Returns the index of the candidate that is acted on. Default: a random one among the best. */
  choose?(candidates: readonly ScoredCandidate[], random: Random): number | Promise<number>
}

/** Start state and step limit of an episode. */
export interface EpisodeStart {
  /** Maximum number of steps, instead of `rollout.maxSteps`. Replayed actions do not count. */
  readonly maxSteps?: number | undefined
  /**
   * Actions that are executed before the policy plays. They are part of the history but are not steps: they are not trained on, and their
   * rewards do not count. If they end the episode, it has no steps.
   */
  readonly replay?: readonly string[] | undefined
  /** Text that is appended to the last message of every prompt, after an empty line. */
  readonly hint?: string | undefined
  /**
   * Whether to train as if the policy had played without the hint: training sequences contain the prompt without the hint, with the
   * log-probabilities of sampling, and are marked by `Segment.offPolicy`. Default false.
   */
  readonly offPolicy?: boolean | undefined
}

/** Group: the episodes of one task in one iteration. */
export interface Group<Task = unknown> {
  /** Task of all episodes of the group. */
  readonly task: Task
  /** Index of the task in the iteration, from 0. */
  readonly index: number
  /** Episodes in the order of their members. */
  readonly episodes: readonly Episode[]
}

/** Context of `guide`. */
export interface GuideContext extends HookContext {
  /**
   * Plays the task again, with as many episodes as a group has, from a given start. The hooks `candidates`, `sample` and `onTurn` apply. Rollouts
   * run one after another.
   */
  rollout(start: EpisodeStart): Promise<readonly Episode[]>
}

/** Hooks of a rollout: functions that are called during the rollout or on its episodes. An error of a hook ends the rollout. */
export interface RolloutHooks<Task = unknown> extends Partial<Stateful> {
  /**
   * Checks the environment, undefined if an agent plays, and throws if it lacks what the hooks need. Called before a training run writes anything
   * and before a rollout plays anything.
   */
  check?(environment: Environment<Task> | undefined): void
  /** Returns the start of an episode. undefined: the start state of the environment. */
  start?(task: Task, context: HookContext): EpisodeStart | undefined | Promise<EpisodeStart | undefined>
  /** Called once per turn: returns the number of completions to sample and their scoring. Default: one completion without a score. */
  candidates?(
    turn: TurnContext<Task>,
    context: HookContext,
  ): CandidateSet | undefined | Promise<CandidateSet | undefined>
  /** Samples a completion of at most `maxTokens`, in one request or several. Returns the whole completion. */
  sample?(turn: SamplingTurn<Task>, context: HookContext): Promise<SampledCompletion>
  /**
   * Decides whether a completion is acted on, sampled again or branched. After `rollout.maxResamples` rejected completions of a prompt, the next one
   * is accepted. For the first completion of a branch, `branch` counts as `accept`.
   */
  onTurn?(turn: SampledTurn<Task>, context: HookContext): TurnDecision | Promise<TurnDecision>
  /**
   * Returns other episodes for a group, for example from further rollouts of its task; undefined leaves the group unchanged. Called after all
   * groups of a round have been played; calls run concurrently.
   */
  guide?(
    group: Group<Task>,
    context: GuideContext,
  ): readonly Episode[] | undefined | Promise<readonly Episode[] | undefined>
  /**
   * Returns the episodes of a group with other rewards, for example from a judge: the same number in the same order. Returns are computed from
   * the rewards. Called after all groups of a round have been played, in the order of tasks; calls run concurrently.
   */
  score?(group: Group<Task>, context: HookContext): readonly Episode[] | Promise<readonly Episode[]>
  /**
   * Decides whether a group is trained on. Dropped groups are replaced by groups of further tasks, in at most `rollout.maxRefillRounds` rounds.
   * Called for the scored groups of a round in the order of tasks, one after another.
   */
  keep?(group: Group<Task>, context: HookContext): boolean | Promise<boolean>
  /** Called with all groups of an iteration, including dropped ones, in the order of tasks. Hooks with a state should change it here. */
  rolloutEnd?(groups: readonly Group<Task>[], context: HookContext): void | Promise<void>
}

/** Source of tasks. The default is the order of the environment; curricula may replace it. */
export interface TaskSource<Task = unknown> extends Partial<Stateful> {
  /**
   * Returns the next task; undefined if there are no more in this iteration. `index` counts from 0 in each iteration. Called when a task is
   * needed, one call at a time.
   */
  next(context: HookContext & { readonly index: number }): Task | undefined | Promise<Task | undefined>
}
