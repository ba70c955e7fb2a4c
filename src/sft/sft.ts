import { exclusively } from "../engine/claims.ts"
import type { Trainable } from "../engine/engine.ts"
import { checkArguments } from "../options/arguments.ts"
import { readOptions } from "../options/read.ts"
import { runDate } from "../runs/date.ts"
import { nameOf, type Run } from "../runs/run.ts"
import { saveOnSignal } from "../runs/save-on-signal.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { accumulate } from "../training/accumulate.ts"
import { checkModel } from "../training/check-setup.ts"
import { resolveLearningRate, sftLearningRate } from "../training/learning-rate.ts"
import type { TeacherSetup } from "../training/player.ts"
import type { Progress } from "../training/progress.ts"
import { ReportStream } from "../training/reports.ts"
import { batches } from "../training/rows.ts"
import { adamwAt } from "../training/schedule.ts"
import { rateKeys } from "../training/settle-rates.ts"
import { GigpoError } from "../util/errors.ts"
import { Random } from "../util/random.ts"
import { Epoch } from "./epoch.ts"
import { makeSftLoss } from "./loss.ts"
import { type SftOptions, sftFields } from "./options.ts"
import { SftRun } from "./run.ts"
import { checkSftLoss, sftSequences } from "./sequences.ts"

/** Arguments of `sft`. Completions to imitate come from an expert or from `data`. */
export interface SftSetup<Task = unknown> extends SftOptions, Omit<TeacherSetup<Task>, "environment"> {
  /** Environment whose expert is imitated. May be left out if `data` is given. */
  readonly environment?: TeacherSetup<Task>["environment"] | undefined
  /** Model that is fine-tuned. */
  readonly policy: Trainable
  /** Tokenizer of the model. */
  readonly tokenizer: ChatCodec
  /** Run that stores the log and checkpoints. Its iterations are optimizer steps. Without a run nothing is written. */
  readonly run?: Run | undefined
  /** Signal that aborts the fine-tuning. */
  readonly signal?: AbortSignal | undefined
  /** Whether SIGINT, SIGTERM and SIGHUP save the run before they end the process. Default true. */
  readonly handleSignals?: boolean | undefined
  /** Called with the number of completed optimizer steps. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Called with the number of episodes that the expert has played, before the first step. */
  readonly onExpert?: ((progress: Progress) => void) | undefined
  /** Called with warnings, for example about failed episodes, which are left out. Default: a warning of Node.js. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** Report of one epoch of supervised fine-tuning. */
export interface SftReport {
  /** Number of the epoch, from 1. */
  readonly epoch: number
  /** Number of epochs. */
  readonly epochs: number
  /** Mean loss of the epoch: cross-entropy over the learned tokens, in nats, or DPO over pairs. */
  readonly loss: number
  /** Number of learned steps (completions) per epoch. */
  readonly rows: number
  /** Duration of the optimizer steps of the epoch in seconds. */
  readonly seconds: number
  /** Means of the metrics of loss and engine by full name, such as "preference/accuracy". */
  readonly metrics: Readonly<Record<string, number>>
}

/**
 * Fine-tunes a policy by supervised learning (SFT, behavior cloning).
 *
 * The completions to imitate are those of an environment's expert, of an expert that completes the calls of an agent, or of `data` (chat
 * transcripts, recorded episodes). With the loss dpo, the policy learns from preference pairs. Each report is one epoch. Iterate with
 * `for await` to receive each report when it is available, or `await` all reports.
 *
 * With a run, each report is logged, a checkpoint is written after every `checkpointEvery` epochs, and the last completed step is saved however
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
    const work = (policy: Trainable) => saveOnSignal(setup, (signal) => passes({ ...setup, policy, signal }))
    return exclusively(setup.policy, nameOf("sft", setup), work, { run: setup.run })
  })
}

async function* passes<Task>(setup: SftSetup<Task>): AsyncGenerator<SftReport, void, undefined> {
  const { policy, tokenizer, environment: _, agent: __, normalize: ___, expert: ____, ...own } = setup
  const { run, signal, handleSignals: _____, onProgress, onExpert: ______, onWarning: _______, ...given } = own
  const options = readOptions("sft", given, sftFields)
  checkModel("sft", policy, tokenizer)
  const { seed, epochs, batchSteps, checkpointEvery } = options
  const { warmup = epochs / 20, ...rest } = options.optimizer
  const optimizer = {
    ...resolveLearningRate(rest, sftLearningRate(options), policy, run?.settled[rateKeys.policy]),
    warmup,
  }
  if (warmup > epochs)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `sft: optimizer.warmup is ${warmup} epochs, but there are only ${epochs} epochs; it is a number of epochs, for example 0.1 for a ` +
        "tenth of an epoch.",
    )
  const loss = makeSftLoss(options.loss)
  await checkSftLoss(policy, loss)
  const epoch = new Epoch()
  const rates = rest.learningRate === undefined ? { [rateKeys.policy]: optimizer.learningRate } : {}
  const settled = { settled: rates, promptDate: await runDate(tokenizer, run) }
  const cloning = run && (await SftRun.check(setup, run, epoch, settled, loss, options))
  const random = new Random(seed).fork("sft")
  const apart = await sftSequences(setup, options, loss, random)
  const items = apart.flat()
  const rows = items.flat()
  // A sequence may have several steps, and a pair several sequences. A batch has at least one item.
  const steps = rows.reduce((sum, { spans }) => sum + spans.length, 0)
  const perEpoch = Math.min(Math.ceil(steps / batchSteps), items.length)
  const total = epochs * perEpoch
  epoch.over(rows, perEpoch)
  await cloning?.begin()
  let step = run?.iteration ?? 0
  let whole = true // the weights are those after `step` steps
  try {
    while (epoch.index < epochs) {
      const done = step - epoch.index * perEpoch
      const drawn = batches(apart, { parts: perEpoch }, random.fork("epoch", epoch.index), () => 1)
      for (const [index, together] of drawn.entries()) {
        if (index < done) continue
        const batch = together.flat()
        const started = performance.now()
        const progress = { iteration: epoch.index, iterations: epochs }
        const draws = random.fork("loss", epoch.index, index)
        const report = await accumulate(policy, batch, loss, { progress, random: draws, imitation: true, signal })
        whole = false
        const { skipped } = await policy.optimizerStep(
          adamwAt(optimizer, { index: step, total, perIteration: perEpoch }),
        )
        if (skipped) throw diverged(step)
        const weight = loss.name === "dpo" ? together.length : report.tokens
        epoch.add(report, weight, (performance.now() - started) / 1000)
        step++
        whole = true
        onProgress?.({ stage: "sft", done: step, total })
      }
      const { loss: mean, seconds, metrics } = epoch
      const report = { epoch: epoch.index + 1, epochs, loss: mean, rows: steps, seconds, metrics }
      await cloning?.log(step, report)
      epoch.next()
      if (epoch.index === epochs || epoch.index % checkpointEvery === 0) await cloning?.save(step)
      yield report
    }
  } finally {
    if (whole) await cloning?.save(step)
  }
}

function diverged(step: number): GigpoError {
  return new GigpoError(
    "NON_FINITE",
    `The gradients of step ${step + 1} of the fine-tuning are not finite: start again with a lower optimizer.learningRate.`,
  )
}
