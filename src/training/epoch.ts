import { createHash } from "node:crypto"
import type { LossReport } from "../engine/engine.ts"
import type { Row } from "../engine/rows.ts"
import { GigpoError } from "../errors.ts"
import type { State, Stateful } from "../state.ts"

/** The epoch of a cloning that is under way, and what it has come to so far: remembered by checkpoints in the middle of it. */
export class Epoch implements Stateful {
  #work = ""
  #sums: Sums = nothing

  /** Tells what there is to do in each epoch: so many optimizer steps over these rows. */
  over(rows: readonly Row[], steps: number): void {
    const hash = createHash("sha256").update(String(steps))
    for (const { tokens, spans } of rows) hash.update(JSON.stringify(spans.map(({ start }) => start))).update(tokens)
    this.#work = hash.digest("hex")
  }

  /** From 0. */
  get index(): number {
    return this.#sums.epoch
  }

  /** Mean over all tokens. */
  get loss(): number {
    return this.#sums.loss / this.#sums.tokens
  }

  get seconds(): number {
    return this.#sums.seconds
  }

  add({ loss, tokens }: LossReport, seconds: number): void {
    const sums = this.#sums
    this.#sums = {
      ...sums,
      loss: sums.loss + loss * tokens,
      tokens: sums.tokens + tokens,
      seconds: sums.seconds + seconds,
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
    const { work, ...sums } = json as unknown as Sums & { readonly work: string }
    if (work !== this.#work)
      throw new GigpoError(
        "BAD_CONFIG",
        "This cloning cannot go on: its steps are not those that it began with. Give the tasks, the batchRows and the environment " +
          "that it began with, or begin it anew.",
      )
    this.#sums = sums
  }
}

interface Sums {
  readonly epoch: number
  readonly loss: number
  readonly tokens: number
  readonly seconds: number
}

const nothing: Sums = { epoch: 0, loss: 0, tokens: 0, seconds: 0 }
