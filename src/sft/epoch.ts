import { createHash } from "node:crypto"
import type { LossReport } from "../engine/engine.ts"
import type { Sequence } from "../engine/rows.ts"
import { GigpoError } from "../util/errors.ts"
import type { State, Stateful } from "../util/state.ts"

/** The epoch of a cloning that is under way, and what it has come to so far: remembered by checkpoints in the middle of it. */
export class Epoch implements Stateful {
  #work = ""
  #sums: Sums = nothing

  /** Tells what there is to do in each epoch: so many optimizer steps over these rows. */
  over(rows: readonly Sequence[], steps: number): void {
    const hash = createHash("sha256").update(String(steps))
    for (const { tokens, spans } of rows) hash.update(JSON.stringify(spans.map(({ start }) => start))).update(tokens)
    this.#work = hash.digest("hex")
  }

  /** From 0. */
  get index(): number {
    return this.#sums.epoch
  }

  /** Mean over all that was learned from. */
  get loss(): number {
    return this.#sums.loss / this.#sums.weight
  }

  /** Means likewise, of what all batches told. */
  get metrics(): Record<string, number> {
    const { metrics, weight } = this.#sums
    return Object.fromEntries(Object.entries(metrics).map(([name, sum]) => [name, sum / weight]))
  }

  get seconds(): number {
    return this.#sums.seconds
  }

  /** @param weight what the batch counts: its tokens, or what else its loss is a mean over */
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

  /** The next one begins. */
  next(): void {
    this.#sums = { ...nothing, epoch: this.index + 1 }
  }

  state(): State {
    return { json: { ...this.#sums, work: this.#work } }
  }

  restore({ json }: State): void {
    // Earlier checkpoints say "tokens", and have no metrics.
    const { work, tokens, ...sums } = json as unknown as SavedSums
    if (work !== this.#work)
      throw new GigpoError(
        "BAD_CONFIG",
        "This cloning cannot go on: its steps are not those that it began with. Give the tasks, the batchSteps and the environment, or the " +
          "data, that it began with, or begin it anew.",
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
