import type { Credit } from "../credit/estimator.ts"
import type { TopTokens } from "../engine/engine.ts"
import { type Sequence, sampledWeights } from "../engine/sequence.ts"
import { joined } from "../util/joined.ts"
import { atOnce, type Pieces } from "../util/pace.ts"
import { copyTokens, keepSegments, layOut, type SequenceLayout } from "./sequence-layout.ts"
import { viewRows } from "./sequence-rows.ts"
import type { CollectedStep } from "./steps.ts"

/** Columns over the sampled tokens of all segments, [sampled tokens]. Absent if they are not needed. */
export interface SequenceColumns {
  /** Log-probabilities of the sampler, where they differ from those of the steps because some tokens were forced. */
  logProbs?: Float32Array
  oldLogProbs?: Float32Array
  referenceLogProbs?: Float32Array
  teacherLogProbs?: Float32Array
  /** Most likely tokens of a teacher, [sampled tokens × count]. */
  teacherTop?: TopTokens
  values?: Float32Array
  /** Product of all weights of each token, if there are more than the weights of the estimator. */
  weights?: Float32Array
}

/**
 * Table of the sequences of an iteration, from the end of the rollout to the optimizer. Built once from the steps. Statistics and weights are
 * columns over tokens; advantages are given per step. `toSequences` returns views, which losses and engines read.
 */
export class SequenceTable {
  /** Steps in the order of tasks, members and time. */
  readonly steps: readonly CollectedStep[]
  readonly layout: SequenceLayout
  readonly columns: SequenceColumns
  /** Result of the estimator; undefined before the estimator has run. */
  readonly credit: Credit | undefined

  static of(steps: readonly CollectedStep[]): SequenceTable {
    return atOnce(SequenceTable.inPieces(steps))
  }

  /** Builds the table of many steps, with pauses between steps and sequences. */
  static *inPieces(steps: readonly CollectedStep[]): Pieces<SequenceTable> {
    const layout = yield* layOut(steps)
    for (let r = 0; r < layout.begins.length; r++) {
      yield
      copyTokens(layout, steps, r)
    }
    return new SequenceTable(steps, layout, {}, undefined)
  }

  private constructor(
    steps: readonly CollectedStep[],
    layout: SequenceLayout,
    columns: SequenceColumns,
    credit: Credit | undefined,
  ) {
    this.steps = steps
    this.layout = layout
    this.columns = columns
    this.credit = credit
  }

  /** Log-probabilities of the sampler, [sampled tokens]. */
  get logProbs(): Float32Array {
    return this.columns.logProbs ?? this.join(({ record }) => record.logProbs)
  }

  /** Sequence r holds sampled tokens offsets[r] … offsets[r + 1] - 1, [sequences + 1]. */
  get sequenceOffsets(): Int32Array {
    const { segmentOffsets, offsets } = this.layout
    return segmentOffsets.map((segment) => offsets[segment]!)
  }

  /** Views of a column, [steps][tokens of the step]. */
  byStep(column: Float32Array): Float32Array[] {
    const { steps, offsets } = this.layout
    const views = new Array<Float32Array>(this.steps.length)
    for (const [s, step] of steps.entries()) views[step] = column.subarray(offsets[s], offsets[s + 1])
    return views
  }

  /** Concatenates one array per segment's step to a column, [sampled tokens]. */
  join(values: (step: CollectedStep, index: number) => Float32Array): Float32Array {
    return joined(
      Float32Array,
      Array.from(this.layout.steps, (step) => values(this.steps[step]!, step)),
    )
  }

  /** Returns a table with the result of an estimator. Segments of skipped steps are removed. */
  withCredit(credit: Credit): SequenceTable {
    const { skip } = credit
    if (!skip) return new SequenceTable(this.steps, this.layout, { ...this.columns }, credit)
    const { steps, offsets } = this.layout
    const kept = Int32Array.from(steps.keys()).filter((s) => skip[steps[s]!] !== 1)
    const pick = <Values extends Float32Array | Int32Array>(Type: new (length: number) => Values, of: Values, n = 1) =>
      joined(
        Type,
        Array.from(kept, (s) => of.subarray(n * offsets[s]!, n * offsets[s + 1]!)),
      )
    const { teacherTop, ...plain } = this.columns
    const columns: SequenceColumns = {}
    for (const [name, column] of Object.entries(plain) as [keyof typeof plain, Float32Array][])
      columns[name] = pick(Float32Array, column)
    if (teacherTop) {
      const { count, tokens, logProbs } = teacherTop
      columns.teacherTop = {
        count,
        tokens: pick(Int32Array, tokens, count),
        logProbs: pick(Float32Array, logProbs, count),
      }
    }
    return new SequenceTable(this.steps, keepSegments(this.layout, kept), columns, credit)
  }

  /** Multiplies the weights of all tokens by `weights`, [sampled tokens]. */
  weigh(weights: ArrayLike<number>): void {
    const { offsets } = this.layout
    const product = new Float32Array(weights.length)
    for (let s = 0; s + 1 < offsets.length; s++) {
      const before = this.weightsOf(s)
      const start = offsets[s]!
      for (let t = start; t < offsets[s + 1]!; t++) product[t] = weights[t]! * (before?.[t - start] ?? 1)
    }
    this.columns.weights = product
  }

  /** Weights of a segment's tokens; undefined if all are 1. */
  weightsOf(s: number): Float32Array | undefined {
    const step = this.layout.steps[s]!
    if (this.columns.weights) return this.columns.weights.subarray(this.layout.offsets[s], this.layout.offsets[s + 1])
    const { forced } = this.steps[step]!.record
    const [sampled, given] = [forced && sampledWeights(forced), this.credit?.weights?.[step]]
    return given && sampled ? given.map((weight, t) => weight * sampled[t]!) : (given ?? sampled)
  }

  /** Returns the sequences as views of the table. */
  toSequences(): Sequence[] {
    return atOnce(viewRows(this))
  }

  /** `toSequences` for many sequences, which pauses between segments. */
  viewInPieces(): Pieces<Sequence[]> {
    return viewRows(this)
  }
}
