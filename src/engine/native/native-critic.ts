import type { NativeValueLearner } from "../../native/native.ts"
import { GigpoError } from "../../util/errors.ts"
import { checkValueLoss } from "../check-arguments.ts"
import { completeStep } from "../complete-step.ts"
import type { AdamWStep, Critic, LossReport, ModelStore, StepReport, ValueLoss } from "../engine.ts"
import type { Sequence } from "../rows.ts"
import type { LearnerFiles } from "./learner-files.ts"
import { orClear } from "./losses.ts"
import { packRows } from "./pack-rows.ts"
import { settle } from "./started.ts"
import { nativeStore } from "./store.ts"
import { readTensor } from "./tensor-transfer.ts"
import type { Turns } from "./turns.ts"

/**
 * The critic of a `NativePolicy`, in the same engine: a transformer of its own that started from the policy's weights, with one row
 * `score.weight` [1, hidden], 0 at first, in the place of the language model's head. Where the policy trains an adapter, so does its
 * critic, beside the same model, and its head with it.
 */
export class NativeCritic implements Critic {
  /** Saves it as transformers' sequence classifier of one label, with AdamW's moments in a checkpoint. */
  readonly store: ModelStore
  readonly #learner: NativeValueLearner
  readonly #turns: Turns
  readonly #checkChange: (call: string) => void

  /** Made by `NativePolicy.critic`. */
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
      if (batch.spanRows.length === 0) throw new GigpoError("BAD_ARGUMENT", "There are no rows to train on.")
      return () => this.#learner.forwardBackward(batch, { clip })
    }
    const report = await orClear(this.#learner, this.#turns.prepared(prepare, signal), signal)
    const metrics = { "critic/clip-fraction": report.clipFraction, "critic/value": report.value }
    return { loss: report.loss, tokens: report.tokens, metrics }
  }

  async optimizerStep(step: AdamWStep): Promise<StepReport> {
    const complete = completeStep(step)
    this.#checkChange("optimizerStep()")
    return await this.#turns.changing(() => settle(() => this.#learner.optimizerStep(complete)))
  }

  async clearGradients(): Promise<void> {
    this.#checkChange("clearGradients()")
    await this.#turns.call(() => this.#learner.clearGradients())
  }

  /** One weight that it trains by its Hugging Face name, or its adapter's by PEFT's; or its gradient. */
  async tensor(name: string, buffer: "weights" | "gradients" = "weights"): Promise<Float32Array> {
    return await this.#turns.call(() => readTensor(this.#learner, buffer, name))
  }
}
