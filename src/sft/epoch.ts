import { createHash } from "node:crypto"
import type { LossReport } from "../engine/engine.ts"
import type { Sequence } from "../engine/sequence.ts"
import { GigpoError } from "../util/errors.ts"
import type { StateDict, Stateful } from "../util/state.ts"

/** Current epoch of a supervised fine-tuning, with running sums. Saved in checkpoints within the epoch. */
export class Epoch implements Stateful {
  #work = ""
  #sums: Sums = nothing

  /** Sets the work of each epoch: a number of optimizer steps over these sequences. */
  over(rows: readonly Sequence[], steps: number): void {
    const hash = createHash("sha256").update(String(steps))
    for (const { tokens, segments } of rows)
      hash.update(JSON.stringify(segments.map(({ start }) => start))).update(tokens)
    this.#work = hash.digest("hex")
  }

  /** Index of the epoch, from 0. */
  get index(): number {
    return this.#sums.epoch
  }

  /** Mean loss so far, over the weights of the batches. */
  get loss(): number {
    return this.#sums.loss / this.#sums.weight
  }

  /** Mean of each metric so far. */
  get metrics(): Record<string, number> {
    const { metrics, weight } = this.#sums
    return Object.fromEntries(Object.entries(metrics).map(([name, sum]) => [name, sum / weight]))
  }

  get seconds(): number {
    return this.#sums.seconds
  }

  /**
   * Adds the report of a batch.
   *
   * @param weight - number of tokens or pairs that the loss of the batch is a mean over.
   */
  add({ loss, metrics }: LossReport, weight: number, seconds: number): void {
    const sums = this.#sums
    const named = Object.entries(metrics).map(([name, value]) => [name, (sums.metrics[name] ?? 0) + value * weight])
    this.#sums = {
      ...sums,
      loss: sums.loss + loss * weight,
      weight: sums.weight + weight,
      seconds: sums.seconds + seconds,
      metrics: Object.fromEntries(named),
    }
  }

  /** Starts the next epoch. */
  next(): void {
    this.#sums = { ...nothing, epoch: this.index + 1 }
  }

  state(): StateDict {
    return { json: { ...this.#sums, work: this.#work } }
  }

  restore({ json }: StateDict): void {
    // Checkpoints of earlier versions have "tokens" in place of "weight", and no metrics.
    const { work, tokens, ...sums } = json as unknown as SavedSums
    if (work !== this.#work)
      throw new GigpoError(
        "BAD_CONFIG",
        "This fine-tuning cannot be resumed: its data differ from those at its start. Use the tasks, completionsPerUpdate and environment, or the " +
          "data, that it was started with, or start a new run.",
      )
    this.#sums = { metrics: {}, ...sums, ...(tokens !== undefined && { weight: tokens }) }
  }
}

type SavedSums = Omit<Sums, "metrics"> &
  Partial<Pick<Sums, "metrics">> & { readonly work: string; readonly tokens?: number }

interface Sums {
  readonly epoch: number
  readonly loss: number
  readonly weight: number
  readonly seconds: number
  readonly metrics: Readonly<Record<string, number>>
}

const nothing: Sums = { epoch: 0, loss: 0, weight: 0, seconds: 0, metrics: {} }
