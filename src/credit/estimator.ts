import type { Column, Sequence } from "../engine/rows.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { Random } from "../util/random.ts"
import type { Stateful } from "../util/state.ts"

// The seam of credit: what an estimator is given of an iteration's steps, and what it says of them.

/** What was recorded of a step. */
export interface StepRecord {
  readonly observation: { readonly text: string; readonly anchor: string }
  readonly text: string
  readonly action: string
  /** What the environment measured at this step, where it did: rewards of several kinds, say. */
  readonly metrics?: Readonly<Record<string, number>> | undefined
  /** Sampled with more in the prompt than was recorded (a hint), and so were its candidates. */
  readonly offPolicy?: boolean | undefined
  /** Where several replies were sampled to its prompt (`hooks.candidates`): what its own is worth, and those that were not acted on. */
  readonly score?: number | undefined
  readonly candidates?: readonly CandidateRecord[] | undefined
}

/** A reply that was not acted on. */
export interface CandidateRecord {
  readonly prompt: Int32Array
  readonly attachments?: readonly unknown[]
  readonly reply: Int32Array
  readonly logProbs: Float32Array
  /** 1 for a token that was put there and not sampled. */
  readonly forced?: Uint8Array
  readonly text: string
  readonly action: string
  readonly valid: boolean
  readonly score: number
}

/** What is to be known of the model's distribution before credit is given; each is computed because somebody asks for it. */
export type Need = "old" | "reference" | "teacher" | "entropy" | "value" | "greedy" | "text"

/**
 * The steps of an iteration, as columns [steps], in the order of tasks, members and time. Steps of one episode stand in time
 * order. Failed episodes are not among them.
 */
export interface Batch {
  readonly length: number
  /** Dense ids of tasks, in order of first occurrence: only episodes of one task are compared. */
  readonly task: Int32Array
  /** Dense ids of episodes over all tasks, in order of first occurrence. */
  readonly episode: Int32Array
  /** Reward of each step alone; finite. */
  readonly rewards: Float64Array
  /** 0 where the reply could not be read. */
  readonly valid: Uint8Array
  /** What identifies the environment's state before the action. */
  readonly anchors: readonly string[]
  /** Dense ids of step groups: steps of one task with equal anchors, in order of first occurrence. Found once, natively. */
  readonly anchorGroups: Int32Array
  /** The state after the action; undefined where nobody told. */
  readonly nextAnchors: readonly (string | undefined)[]
  /** 1 for the last step of an episode that came to an end of its own. */
  readonly terminated: Uint8Array
  /** 1 for the last step of an episode that was cut off. */
  readonly truncated: Uint8Array
  /** Sampled tokens of each step; 1 where no model took part. */
  readonly lengths: Int32Array
  /** What was said and done; absent for steps that are bare numbers. */
  readonly steps?: readonly StepRecord[]
  /** Dense ids of conversations and of agents, where episodes have several. */
  readonly conversation?: Int32Array
  readonly agent?: Int32Array
  /** What each token adds to its reply's text, where "text" was asked for, [steps][tokens of the step]; special tokens add nothing. */
  readonly tokenTexts?: readonly (readonly string[])[]
  /** What `needs` asked for, [steps][tokens of the step]: log-probabilities, entropies in nats, a critic's values before each token. */
  readonly statistics?: Readonly<Partial<Record<Exclude<Need, "greedy" | "text">, readonly Column[]>>>
  /** Return of the greedy episode of each step's task, where "greedy" was asked for; NaN where that episode failed. [steps] */
  readonly baselines?: Float64Array
  /** Where rewards fall on tokens (a KL penalty), [steps][tokens]; each step's sum is its reward. Absent: all at its last token. */
  readonly tokenRewards?: readonly Column[]
}

/** Values beside the batch that an estimator may use. */
export interface EstimatorContext {
  readonly moment: TrainingProgress
  /** Keyed by seed and iteration. */
  readonly random: Random
  readonly signal?: AbortSignal | undefined
}

/** What an estimator says of a batch. Everything but the advantages may be left out. */
export interface Credit {
  /** One number a step [steps], or one a token [steps][tokens of the step]. */
  readonly advantages: Float64Array | readonly Float32Array[]
  /** 1 for a step that is left out: it stays as context, without loss and without count. A step of advantage 0 still counts. */
  readonly skip?: Uint8Array
  /** What a critic should learn, [steps][tokens]. */
  readonly returns?: readonly Float32Array[]
  /** Weights of the tokens in the policy's loss, [steps][tokens]. */
  readonly weights?: readonly Float32Array[]
  /** Scales the width of each step's clip, [steps]. */
  readonly clipScale?: Float64Array
  /** Rows of earlier iterations or of others, learned beside these; their credit stands in them. */
  readonly extraRows?: readonly Sequence[]
  /** Numbers for the iteration's report, by full names: "step-group/count". */
  readonly metrics?: Readonly<Record<string, number>>
  /** Kept with the episodes, [steps] each: what a viewer shows. */
  readonly details?: Readonly<Record<string, Float64Array | Int32Array>>
}

/** Credit of one advantage a step. */
export interface StepCredit extends Credit {
  readonly advantages: Float64Array
}

/** Gives every step its credit. Deterministic: what is random comes from the context, what is remembered is its state. */
export interface Estimator<C extends Credit = Credit> extends Partial<Stateful> {
  readonly name: string
  /** What it reads from `Batch.statistics`. */
  readonly needs?: readonly Need[]
  /**
   * What a task of one episode comes to: "needed" teaches nothing, since episodes of a task are compared; "wanted" teaches little.
   * Absent where it does as well without groups.
   */
  readonly groups?: "needed" | "wanted" | undefined
  estimate(batch: Batch, context: EstimatorContext): C | Promise<C>
}
