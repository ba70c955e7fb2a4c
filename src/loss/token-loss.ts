import type { NativeLoss } from "../engine/engine.ts"
import type { Column } from "../engine/rows.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { Random } from "../util/random.ts"
import type { Stateful } from "../util/state.ts"

// The seam of losses: whole sequences in, what each sampled token contributes to the gradient out.

/** What a loss reads beside log-probabilities and advantages. */
export type LossNeed = "old" | "reference" | "entropy" | "teacher" | "hellinger"

/**
 * The sampled tokens of one optimizer batch, as flat columns [tokens]: spans one after the other, those of a row together. Views
 * hold during the call.
 */
export interface LossInput {
  readonly tokens: number
  /** Sequence s holds tokens offsets[s] … offsets[s + 1] - 1: a span, or with `unit: "row"` all spans of a row. [sequences + 1] */
  readonly offsets: Int32Array
  /** The same of spans and of rows, whatever the unit. */
  readonly spanOffsets: Int32Array
  readonly rowOffsets: Int32Array
  /** log p of each token under the policy as it is now. */
  readonly logProbs: Column
  /** When it was sampled, or as the trainer computed it before its first update. */
  readonly oldLogProbs: Column
  /** Where the loss needs "reference". */
  readonly referenceLogProbs?: Column
  /** Entropies in nats under the policy as it is now, where the loss needs "entropy". */
  readonly entropies?: Column
  /** Hellinger distances from the reference of the policy as it is now, where the loss needs "hellinger". */
  readonly hellingers?: Column
  /** Where the loss needs "teacher". */
  readonly teacherLogProbs?: Column
  /** Where it has a `teacherTop`. */
  readonly teacherTop?: TeacherTop
  readonly advantages: Column
  /** Of each token in the policy's loss; absent where all are 1. */
  readonly weights?: Column
  /** What each token counts in the batch by the chosen aggregation: the batch's loss is Σ shares · weights · loss of the token. */
  readonly shares: Float64Array
  /** 1 where a span was sampled by another behaviour, [spans]; absent where none was. */
  readonly offPolicy?: Uint8Array
  /** Scales the width of the clip, [spans]; absent where all are 1. */
  readonly clipScale?: Float64Array
  /** Step of the batch, episode and task of each span, [spans]; -1 where nobody told. */
  readonly steps: Int32Array
  readonly episodes: Int32Array
  readonly tasks: Int32Array
  readonly moment: TrainingProgress
  /** Keyed by seed, iteration and optimizer batch. */
  readonly random: Random
}

/** The teacher's most likely tokens: log-probabilities of the teacher, and of the policy as it is now, [tokens × count] each. */
export interface TeacherTop {
  readonly count: number
  readonly teacher: Column
  readonly policy: Column
}

/** Loss of a batch and its gradient by the log-probabilities. */
export interface LossOutput {
  readonly loss: number
  /** d loss / d log p, [tokens]. */
  readonly gradient: Float32Array
  /** d loss / d entropy, [tokens]. */
  readonly entropyGradient?: Float32Array
  /** d loss / d log p of the teacher's most likely tokens, [tokens × count]. */
  readonly topGradient?: Float32Array
  /** Numbers for the iteration's report, by full names: "policy/ratio". Each is averaged over the iteration's batches. */
  readonly metrics?: Readonly<Record<string, number>>
}

/**
 * A loss: called once an optimizer batch, never a micro-batch. A built-in one also has its native form, which an engine that knows
 * it runs in its kernel; any other engine has it evaluated here.
 */
export interface TokenLoss extends Partial<Stateful> {
  readonly name: string
  readonly needs?: readonly LossNeed[]
  /** Of so many of the teacher's most likely tokens at each place it reads the log-probabilities. Default 0. */
  readonly teacherTop?: number
  /** Its native form at this moment of the run; undefined where it has none. */
  native?(moment: TrainingProgress): NativeLoss | undefined
  evaluate(input: LossInput): LossOutput
}
