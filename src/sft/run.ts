import type { Trainable } from "../engine/engine.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import { without } from "../options/fixed.ts"
import type { Saved } from "../runs/checkpoint.ts"
import type { Chosen, Run } from "../runs/run.ts"
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

/** What the data holds is looked at itself (`Epoch`). */
const fields = without(sftFields, "data")

/** What a cloning keeps in its run, whose iterations are optimizer steps. */
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

  /** Refuses what cannot be kept, or gone on with, before anything is done for it. */
  static async check(
    { policy, tokenizer, signal }: Cloned,
    run: Run,
    epoch: Epoch,
    settled: Pick<Chosen, "settled" | "promptDate">,
    loss: TokenLoss,
    { data: _, ...resolved }: ResolvedSftOptions,
  ): Promise<SftRun> {
    const { store } = policy
    if (!store) throw new GigpoError("BAD_ARGUMENT", "This engine cannot be saved: clone without a run.")
    if (run.iteration > 0 && !run.saved)
      throw new GigpoError("BAD_ARGUMENT", "A cloning cannot be forked: resume it, or clone its model into a new run.")
    const reference = run.checkpoint === undefined || (loss.needs?.includes("reference") ?? false)
    const frozen = await policy.frozen?.({ reference, signal })
    const parts = { epoch, ...(loss.state && { loss }) }
    const saved = { store, files: tokenizer.files ?? [], parts, frozen }
    const asked = { call: "sft", section: "sft", fields, resolved, mayChange: ["epochs"] } as const
    await run.check({ ...saved, ...settled, asked })
    return new SftRun(run, saved, epoch)
  }

  /** Makes the run, or puts policy and epoch back to where it stood. */
  async begin(): Promise<void> {
    await this.#run.begin()
    await this.#run.restore(this.#saved)
    this.#kept = this.#place(this.#run.iteration)
  }

  async log(step: number, { epoch, loss, rows, seconds, metrics }: SftReport): Promise<void> {
    const own = { "sft/epoch": epoch, "sft/loss": loss, "sft/rows": rows, "time/epoch": seconds }
    await this.#run.log({ iteration: step, metrics: { ...own, ...metrics } })
  }

  /** Writes a checkpoint in place of the one before, unless that is of this moment. */
  async save(step: number): Promise<void> {
    const place = this.#place(step)
    if (this.#kept === place) return
    await this.#run.saveCheckpoint(step, this.#saved, 1)
    this.#kept = place
  }

  /** The last step of an epoch is one moment before its report, and another after it. */
  #place(step: number): string {
    return `${step} of ${this.#epoch.index}`
  }
}
