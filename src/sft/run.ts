import type { Trainable } from "../engine/engine.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import { without } from "../options/fixed.ts"
import type { Saved } from "../runs/checkpoint.ts"
import type { ResolvedValues, Run } from "../runs/run.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { GigpoError } from "../util/errors.ts"
import type { Epoch } from "./epoch.ts"
import { type ResolvedSftOptions, sftFields } from "./options.ts"
import type { SftReport } from "./sft.ts"

interface Cloned {
  readonly policy: Trainable
  readonly tokenizer: ChatCodec
  readonly signal?: AbortSignal | undefined
}

/** Options that are compared with those of the run. Data is compared by content (`Epoch`). */
const fields = without(sftFields, "data")

/** Run of a supervised fine-tuning. Its log and checkpoints count updates. */
export class SftRun {
  readonly #run: Run
  readonly #saved: Saved
  readonly #epoch: Epoch
  #kept = ""

  private constructor(run: Run, saved: Saved, epoch: Epoch) {
    this.#run = run
    this.#saved = saved
    this.#epoch = epoch
  }

  /** Checks in advance that the fine-tuning can be saved and resumed. */
  static async check(
    { policy, tokenizer, signal }: Cloned,
    run: Run,
    epoch: Epoch,
    settled: Pick<ResolvedValues, "settled" | "promptDate">,
    loss: TokenLoss,
    { data: _, ...resolved }: ResolvedSftOptions,
  ): Promise<SftRun> {
    const { store } = policy
    if (!store)
      throw new GigpoError("BAD_ARGUMENT", "This engine does not support checkpoints: fine-tune without a run.")
    if (run.iteration > 0 && !run.saved)
      throw new GigpoError(
        "BAD_ARGUMENT",
        "A fine-tuning cannot be forked: resume it, or fine-tune its model in a new run.",
      )
    const reference = run.checkpoint === undefined || (loss.needs?.includes("reference") ?? false)
    const frozen = await policy.frozenWeights?.({ reference, signal })
    const parts = { epoch, ...(loss.state && { loss }) }
    const saved = { store, files: tokenizer.files ?? [], parts, frozen, unit: "update" } as const
    const callOptions = { call: "sft", section: "sft", fields, resolved, changeable: ["epochs"] } as const
    await run.check({ ...saved, ...settled, callOptions })
    return new SftRun(run, saved, epoch)
  }

  /** Creates the run, or restores policy and epoch from its checkpoint. */
  async begin(): Promise<void> {
    await this.#run.begin()
    await this.#run.restore(this.#saved)
    this.#kept = this.#place(this.#run.iteration)
  }

  async log(step: number, { epoch, loss, completions, seconds, metrics }: SftReport): Promise<void> {
    const own = { "sft/epoch": epoch, "sft/loss": loss, "sft/completions": completions, "time/epoch": seconds }
    await this.#run.log({ update: step, metrics: { ...own, ...metrics } })
  }

  /** Writes a checkpoint and removes the previous one, unless the previous one has the same state. */
  async save(step: number): Promise<void> {
    const place = this.#place(step)
    if (this.#kept === place) return
    await this.#run.saveCheckpoint(step, this.#saved, 1)
    this.#kept = place
  }

  /** Key of a state. The state after the last step of an epoch differs before and after the report of the epoch. */
  #place(step: number): string {
    return `${step} of ${this.#epoch.index}`
  }
}
