import type { Sequence, TokenColumn } from "../engine/sequence.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { Random } from "../util/random.ts"
import type { Stateful } from "../util/state.ts"

// Interface of estimators: the steps of an iteration as columns in, advantages out.

/** Recorded data of a step. */
export interface EstimatorStep {
  /** Observation before the action: its `text`, its `anchor` (key of the state), and the admissible `actions` where the environment lists them. */
  readonly observation: { readonly text: string; readonly anchor: string; readonly actions?: readonly string[] }
  /** Text of the completion, without special tokens. */
  readonly text: string
  /** Action that was parsed from the completion. */
  readonly action: string
  /** Metrics that the environment reported at this step, for example several kinds of rewards. */
  readonly metrics?: Readonly<Record<string, number>> | undefined
  /** Whether the step and its candidates were sampled with a hint that the recorded prompt does not contain. */
  readonly offPolicy?: boolean | undefined
  /** Score of the completion, if several candidates were sampled (`hooks.candidates`). */
  readonly score?: number | undefined
  /** Candidates that were not acted on. */
  readonly candidates?: readonly EstimatorCandidate[] | undefined
}

/** Candidate completion that was not acted on. */
export interface EstimatorCandidate {
  /** Token ids of the prompt. */
  readonly prompt: Int32Array
  /** Attachments of the prompt (images). */
  readonly attachments?: readonly unknown[]
  /** Token ids of the completion, [tokens]. */
  readonly completion: Int32Array
  /** Log-probability of each completion token at the time of sampling, [tokens]. */
  readonly logProbs: Float32Array
  /** 1 for forced tokens, which were inserted and not sampled, [tokens]. */
  readonly forced?: Uint8Array
  /** Text of the completion, without special tokens. */
  readonly text: string
  /** Action that was parsed from the completion. */
  readonly action: string
  /** Whether the completion could be parsed into an action. */
  readonly valid: boolean
  /** Score of the candidate (`hooks.candidates`). Larger is better. */
  readonly score: number
}

/** Statistic that an estimator needs. Statistics are computed only on request. */
export type EstimatorStatistic = "old" | "reference" | "teacher" | "entropy" | "squares" | "value" | "greedy" | "text"

/**
 * Steps of an iteration as columns, [steps], in the order of tasks, members and time. Steps of an episode are in order of time. Failed and
 * excluded episodes are not included.
 */
export interface Batch {
  /** Number of steps. */
  readonly length: number
  /** Dense ids of tasks, in order of first occurrence. Only episodes of the same task are compared. */
  readonly task: Int32Array
  /** Dense ids of episodes over all tasks, in order of first occurrence. */
  readonly episode: Int32Array
  /** Reward of each step; finite. */
  readonly rewards: Float64Array
  /** Part of each step's reward that counts only in the return of its episode, not in returns of steps, [steps]. Absent: none. */
  readonly episodeRewards?: Float64Array
  /** 1 for steps whose completion could be parsed into an action, else 0. */
  readonly valid: Uint8Array
  /** Anchor state before the action. */
  readonly anchors: readonly string[]
  /** Dense ids of step groups (steps of one task with equal anchor states), in order of first occurrence. */
  readonly anchorGroups: Int32Array
  /** Anchor state after the action; undefined if unknown. */
  readonly nextAnchors: readonly (string | undefined)[]
  /** 1 for the last step of an episode that terminated. */
  readonly terminated: Uint8Array
  /** 1 for the last step of an episode that was truncated or ended by overflow. */
  readonly truncated: Uint8Array
  /** Number of sampled tokens of each step; 1 for steps without a model. */
  readonly lengths: Int32Array
  /** Recorded data of the steps. Absent for steps that consist of numbers only. */
  readonly steps?: readonly EstimatorStep[]
  /** Dense ids of conversations, if episodes have several. */
  readonly conversation?: Int32Array
  /** Dense ids of agents, if episodes have several. */
  readonly agent?: Int32Array
  /** Name of each agent by its id, [agents]. Present with `agent`. */
  readonly agentNames?: readonly (string | number)[]
  /** Text of each token of the completion, [steps][tokens of the step]. Present for the need "text". Special tokens have an empty text. */
  readonly tokenTexts?: readonly (readonly string[])[]
  /** Statistics that `needs` requests, [steps][tokens of the step]: log-probabilities, entropies in nats, sums of squared probabilities, or critic values before each token. */
  readonly statistics?: Readonly<
    Partial<Record<Exclude<EstimatorStatistic, "greedy" | "text">, readonly TokenColumn[]>>
  >
  /** Return of the greedy episode of each step's task, [steps]. Present for the need "greedy". NaN if that episode failed. */
  readonly baselines?: Float64Array
  /** Rewards per token (with a KL penalty), [steps][tokens]. The sum over a step is its reward. Absent: the whole reward is at the last token. */
  readonly tokenRewards?: readonly TokenColumn[]
}

/** Context of an estimator. */
export interface EstimatorContext {
  /** Progress of the run, for schedules. */
  readonly progress: TrainingProgress
  /** Generator, keyed by seed and iteration. */
  readonly random: Random
  /** Signal that aborts the training. */
  readonly signal?: AbortSignal | undefined
}

/** Result of an estimator. All keys but the advantages are optional. */
export interface Credit {
  /** Advantages per step, [steps], or per token, [steps][tokens of the step]. */
  readonly advantages: Float64Array | readonly Float32Array[]
  /** 1 for skipped steps, [steps]. A skipped step stays in the context and is left out of loss and counts. A step with advantage 0 still counts. */
  readonly skip?: Uint8Array
  /** Returns that a critic is trained on, [steps][tokens]. */
  readonly returns?: readonly Float32Array[]
  /** Weights of tokens in the policy loss, [steps][tokens]. */
  readonly weights?: readonly Float32Array[]
  /** Factor of the clip range of each step, [steps]. */
  readonly clipScale?: Float64Array
  /** Additional training sequences, for example of earlier iterations, with their advantages. */
  readonly extraSequences?: readonly Sequence[]
  /** Sequences with updates and a loss of their own, after the updates of each epoch. */
  readonly replay?: Replay
  /** Metrics of the iteration by full name, such as "step-group/count". */
  readonly metrics?: Readonly<Record<string, number>>
  /** Details that are recorded with the episodes and shown in the dashboard, [steps] each. */
  readonly details?: Readonly<Record<string, Float64Array | Int32Array>>
}

/** Sequences that are trained on in updates of their own. */
export interface Replay {
  /** Sequences with advantages and log-probabilities of sampling. */
  readonly sequences: readonly Sequence[]
  /** Policy loss, with the entropy bonus and the aggregation of the training, and without its KL penalty. */
  readonly loss: TokenLoss
  /** Factor of the whole loss, at least 0. */
  readonly weight: number
}

/** Result of an estimator with one advantage per step. */
export interface StepCredit extends Credit {
  readonly advantages: Float64Array
}

/**
 * Advantage estimator: a function from the rewards of an iteration to advantages. Must be deterministic: random numbers come from the context, and
 * data of earlier iterations is kept in the state.
 */
export interface Estimator<C extends Credit = Credit> extends Partial<Stateful> {
  /** Name, for messages. */
  readonly name: string
  /** Statistics that the estimator needs. */
  readonly needs?: readonly EstimatorStatistic[]
  /**
   * Dependence on groups of at least two episodes per task: "needed" if the estimator learns nothing without them, "wanted" if it learns little.
   * Absent for an estimator that does not compare episodes.
   */
  readonly groups?: "needed" | "wanted" | undefined
  /** Computes the advantages of a batch. */
  estimate(batch: Batch, context: EstimatorContext): C | Promise<C>
}
