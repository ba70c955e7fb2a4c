import { exclusively } from "../engine/claims.ts"
import type { Trainable } from "../engine/engine.ts"
import { checkArguments } from "../options/arguments.ts"
import { nameOf, type Run } from "../runs/run.ts"
import { saveOnSignal } from "../runs/save-on-signal.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import type { DemonstrationSetup } from "../training/player.ts"
import type { StageProgress } from "../training/progress.ts"
import { ReportStream } from "../training/reports.ts"
import type { SftOptions } from "./options.ts"

/** Arguments of `sft`. Completions to imitate come from an expert or from `data`. */
export interface SftSetup<Task = unknown> extends SftOptions, Omit<DemonstrationSetup<Task>, "environment"> {
  /** Environment whose expert is imitated. May be left out if `data` is given. */
  readonly environment?: DemonstrationSetup<Task>["environment"] | undefined
  /** Model that is fine-tuned. */
  readonly policy: Trainable
  /** Tokenizer of the model. */
  readonly tokenizer: ChatCodec
  /** Run that stores the log and checkpoints. Its log and the names of its checkpoints count updates. Without a run nothing is written. */
  readonly run?: Run | undefined
  /** Signal that aborts the fine-tuning. */
  readonly signal?: AbortSignal | undefined
  /** Whether SIGINT, SIGTERM and SIGHUP save the run before they end the process. Default true. */
  readonly handleSignals?: boolean | undefined
  /** Called with the number of completed updates. */
  readonly onProgress?: ((progress: StageProgress) => void) | undefined
  /** Called with the number of episodes that the expert has played, before the first step. */
  readonly onExpert?: ((progress: StageProgress) => void) | undefined
  /** Called with warnings, for example about failed episodes, which are left out. Default: a warning of Node.js. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** Report of one epoch of supervised fine-tuning. */
export interface SftReport {
  /** Number of the epoch, from 1. */
  readonly epoch: number
  /** Number of epochs. */
  readonly epochs: number
  /** Mean loss of the epoch: cross-entropy over the tokens in the loss, in nats, or DPO over pairs. */
  readonly loss: number
  /** Number of completions that an epoch trains on. */
  readonly completions: number
  /** Duration of the optimizer steps of the epoch in seconds. */
  readonly seconds: number
  /** Means of the metrics of loss and engine by full name, such as "preference/accuracy". */
  readonly metrics: Readonly<Record<string, number>>
}

/**
 * Fine-tunes a policy by supervised learning (SFT, behavior cloning).
 *
 * The completions to imitate are those of an environment's expert, of an expert that completes the calls of an agent, or of `data` (chat
 * transcripts, recorded episodes). With the loss dpo, the policy is trained on preference pairs. Each report is one epoch. Iterate with
 * `for await` to receive each report when it is available, or `await` all reports.
 *
 * With a run, each report is logged, a checkpoint is written after every `checkpointEvery` epochs, and the last completed update is saved however
 * the fine-tuning ends. Random numbers are keyed by (seed, epoch, batch), so that a resumed fine-tuning continues as without the interruption.
 * The expert plays, or the data is read, again on resumption.
 *
 * The fine-tuning has exclusive use of the policy until it ends; see `train`.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option, `BAD_DATA` for data that cannot be used, `NON_FINITE` for gradients that are not
 * finite, and errors of the expert, the engine and the run.
 */
export function sft<Task>(setup: SftSetup<Task>): ReportStream<SftReport> {
  return new ReportStream(() => {
    checkArguments("sft", setup)
    const work = (policy: Trainable) =>
      saveOnSignal(setup, async function* (signal) {
        const { fineTune } = await import("./epochs.ts")
        yield* fineTune({ ...setup, policy, signal })
      })
    return exclusively(setup.policy, nameOf("sft", setup), work, { run: setup.run })
  })
}
