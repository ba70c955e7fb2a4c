import type { NativeValueLearner } from "../../native/native.ts"
import { GigpoError } from "../../util/errors.ts"
import { checkValueLoss } from "../check-arguments.ts"
import { completeStep } from "../complete-step.ts"
import type { AdamWParameters, Critic, LossReport, ModelStore, OptimizerStepStatistics, ValueLoss } from "../engine.ts"
import type { Sequence } from "../sequence.ts"
import type { LearnerFiles } from "./learner-files.ts"
import { orClear } from "./losses.ts"
import { packRows } from "./pack-rows.ts"
import { settle } from "./started.ts"
import { nativeStore } from "./store.ts"
import { readTensor } from "./tensor-transfer.ts"
import type { Turns } from "./turns.ts"

/**
 * Critic of a `NativePolicy`, in the same engine: a separate transformer, initialized with the policy's weights. Its output layer
 * `score.weight` [1, hidden] starts at 0. With a LoRA policy, the critic trains a second adapter of the same base model and its
 * output layer.
 */
export class NativeCritic implements Critic {
  /** Store of the critic, in the format of transformers' sequence classifier with one label; checkpoints include AdamW's moments. */
  readonly store: ModelStore
  readonly #learner: NativeValueLearner
  readonly #turns: Turns
  readonly #checkChange: (call: string) => void

  /** Called by `NativePolicy.critic`. */
  constructor(learner: NativeValueLearner, files: LearnerFiles, turns: Turns, checkChange: (call: string) => void) {
    this.#learner = learner
    this.#turns = turns
    this.#checkChange = checkChange
    this.store = nativeStore(files, turns, { change: () => checkChange("store.restore()") })
  }

  async predict(rows: readonly Sequence[], options: { signal?: AbortSignal | undefined } = {}): Promise<Float32Array> {
    const { signal } = options
    const prepare = async () => {
      const batch = await packRows(rows, {}, signal)
      return () => this.#learner.predict(batch)
    }
    return await this.#turns.prepared(prepare, signal)
  }

  async forwardBackward(
    rows: readonly Sequence[],
    loss: ValueLoss,
    options: { signal?: AbortSignal | undefined } = {},
  ): Promise<LossReport> {
    checkValueLoss(loss)
    this.#checkChange("forwardBackward()")
    const { clip } = loss
    const { signal } = options
    const prepare = async () => {
      const batch = await packRows(rows, { returns: true, values: clip !== Number.POSITIVE_INFINITY }, signal)
      if (batch.spanRows.length === 0) throw new GigpoError("BAD_ARGUMENT", "There are no sequences to train on.")
      return () => this.#learner.forwardBackward(batch, { clip })
    }
    const report = await orClear(this.#learner, this.#turns.prepared(prepare, signal), signal)
    const metrics = { "critic/clip-fraction": report.clipFraction, "critic/value": report.value }
    return { loss: report.loss, tokens: report.tokens, metrics }
  }

  async optimizerStep(step: AdamWParameters): Promise<OptimizerStepStatistics> {
    const complete = completeStep(step)
    this.#checkChange("optimizerStep()")
    return await this.#turns.changing(() => settle(() => this.#learner.optimizerStep(complete)))
  }

  async clearGradients(): Promise<void> {
    this.#checkChange("clearGradients()")
    await this.#turns.call(() => this.#learner.clearGradients())
  }

  /** Returns a trained weight, or its gradient, by its Hugging Face name, or PEFT's name for an adapter. */
  async tensor(name: string, buffer: "weights" | "gradients" = "weights"): Promise<Float32Array> {
    return await this.#turns.call(() => readTensor(this.#learner, buffer, name))
  }
}
