import type { NativeLoss } from "../engine/engine.ts"
import type { TokenColumn } from "../engine/sequence.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { Random } from "../util/random.ts"
import type { Stateful } from "../util/state.ts"

// Interface of losses: columns of the sampled tokens in, derivatives with respect to their log-probabilities out.

/** Column that a loss needs besides log-probabilities and advantages. */
export type LossColumn = "old" | "reference" | "entropy" | "teacher" | "hellinger"

/**
 * Sampled tokens of one optimizer batch as flat columns, [tokens]. Segments follow each other; those of a sequence are
 * adjacent. Arrays are valid during the call only.
 */
export interface LossInput {
  /** Number of sampled tokens. */
  readonly tokens: number
  /**
   * Bounds of the units of sequence-level losses: unit s holds tokens offsets[s] … offsets[s + 1] - 1. A unit is a segment, or with
   * `unit: "conversation"` all segments of a sequence. [units + 1]
   */
  readonly offsets: Int32Array
  /** Bounds of segments, like `offsets`, [segments + 1]. */
  readonly segmentOffsets: Int32Array
  /** Bounds of sequences, like `offsets`, [sequences + 1]. */
  readonly sequenceOffsets: Int32Array
  /** log p of each token under the current policy. */
  readonly logProbs: TokenColumn
  /** log p of each token under the old policy: at the time of sampling, or computed by the trainer before the first update. */
  readonly oldLogProbs: TokenColumn
  /** log p of each token under the reference policy. Present if the loss needs "reference" or all segments have it. */
  readonly referenceLogProbs?: TokenColumn
  /** Entropies of the current policy in nats. Present if the loss needs "entropy". */
  readonly entropies?: TokenColumn
  /** Hellinger distances between current policy and reference policy. Present if the loss needs "hellinger". */
  readonly hellingers?: TokenColumn
  /** log p of each token under the teacher. Present if the loss needs "teacher". */
  readonly teacherLogProbs?: TokenColumn
  /** Most likely tokens of the teacher. Present if `teacherTop` of the loss is above 0. */
  readonly teacherTop?: TeacherTop
  /** Advantage of each token. */
  readonly advantages: TokenColumn
  /** Weight of each token in the policy loss. Absent if all are 1. */
  readonly weights?: TokenColumn
  /** Share of each token in the aggregation: the loss of the batch is Σ shares · weights · token loss. */
  readonly shares: Float64Array
  /** 1 for segments that were sampled by another policy or with a hint, [segments]. Absent if there are none. */
  readonly offPolicy?: Uint8Array
  /** Factor of the clip range of each segment, [segments]. Absent if all are 1. */
  readonly clipScale?: Float64Array
  /** Index of each segment's step in the batch, [segments]; -1 if unknown. */
  readonly steps: Int32Array
  /** Index of each segment's episode, [segments]; -1 if unknown. */
  readonly episodes: Int32Array
  /** Index of each segment's task, [segments]; -1 if unknown. */
  readonly tasks: Int32Array
  /** Progress of the run, for schedules. */
  readonly progress: TrainingProgress
  /** Generator, keyed by seed, iteration and optimizer batch. */
  readonly random: Random
}

/** Log-probabilities of the teacher's most likely tokens, by the teacher and by the current policy, [tokens × count] each. */
export interface TeacherTop {
  /** Number of tokens per position. */
  readonly count: number
  /** The teacher's log-probabilities, [tokens × count]. */
  readonly teacher: TokenColumn
  /** Log-probabilities of the same tokens under the policy, [tokens × count]. */
  readonly policy: TokenColumn
}

/** Loss of a batch, and its gradient with respect to the log-probabilities. */
export interface LossOutput {
  /** Value of the loss. */
  readonly loss: number
  /** d loss / d log p, [tokens]. */
  readonly gradient: Float32Array
  /** d loss / d entropy, [tokens]. */
  readonly entropyGradient?: Float32Array
  /** d loss / d log p of the teacher's most likely tokens, [tokens × count]. */
  readonly topGradient?: Float32Array
  /** Metrics of the iteration by full name, such as "policy/ratio". Each is averaged over the batches of the iteration. */
  readonly metrics?: Readonly<Record<string, number>>
}

/**
 * Loss over the sampled tokens of an optimizer batch. `evaluate` is called once per optimizer batch, not per micro-batch. An engine that
 * supports the native form of a built-in loss computes it in a kernel and does not call `evaluate`.
 */
export interface TokenLoss extends Partial<Stateful> {
  /** Name, for messages. */
  readonly name: string
  /** Columns that the loss needs besides log-probabilities and advantages. */
  readonly needs?: readonly LossColumn[]
  /** Number of the teacher's most likely tokens whose log-probabilities the loss reads at each position. Default 0. */
  readonly teacherTop?: number
  /** Whether the loss also includes observations: training adds the observations as off-policy sequences. Default false. */
  readonly observations?: boolean
  /** Returns the native form at a point of training; undefined if there is none. */
  native?(progress: TrainingProgress): NativeLoss | undefined
  /** Computes the loss of a batch and its gradient. */
  evaluate(input: LossInput): LossOutput
}
