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
import { Reports } from "../training/reports.ts"
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

/** Who is learned from is an environment's expert, or `data` that somebody brings. */
export interface SftSetup<Task = unknown> extends SftOptions, Omit<TeacherSetup<Task>, "environment"> {
  readonly environment?: TeacherSetup<Task>["environment"] | undefined
  readonly policy: Trainable
  readonly tokenizer: ChatCodec
  /** Where its log and checkpoints go; without it nothing is written. A run's iterations are here optimizer steps. */
  readonly run?: Run | undefined

  readonly signal?: AbortSignal | undefined
  /** Whether signals save the run before they end the process, as in training. Default true. */
  readonly handleSignals?: boolean | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Told of how many episodes the expert has played, before the first step. */
  readonly onExpert?: ((progress: Progress) => void) | undefined
  /** Told of episodes in which the environment or its expert failed, which are left out. Default: a warning of Node.js. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** Report of one epoch of cloning. */
export interface SftReport {
  readonly epoch: number
  readonly epochs: number
  /** Mean of the loss during this epoch: of cross-entropy over the tokens that are learned, in nats, of dpo over pairs. */
  readonly loss: number
  /** Steps, or replies, that are learned. */
  readonly rows: number
  readonly seconds: number
  /** Means likewise of what the loss and the engine tell, by full names: "preference/accuracy". */
  readonly metrics: Readonly<Record<string, number>>
}

/**
 * Behaviour cloning: fits the policy to the replies of the environment's expert, of one that spoke to an agent in the model's
 * place, or of `data` (chat transcripts, recorded episodes), so that reinforcement learning starts from something sensible. With the loss
 * dpo it learns what is preferred, from pairs. Each report is one pass over all of it. Iterate it, or await it for all of them.
 *
 * With a run each report is logged, a checkpoint is written after every `checkpointEvery` epochs, and however the cloning ends, its
 * last whole step is saved. Everything random is keyed by (seed, epoch, batch), so one that is resumed comes to what it would have
 * come to; the expert plays, or the data is read, again then.
 *
 * The policy belongs to this cloning until it has ended: see `train`.
 */
export function sft<Task>(setup: SftSetup<Task>): Reports<SftReport> {
  return new Reports(() => {
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
      `sft: optimizer.warmup is ${warmup} epochs, but there are ${epochs}; where it counts epochs, and 0.1 is a ` +
        "tenth of one.",
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
  // A row may hold several steps, and a pair is of several rows; a batch holds one at least.
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
        const moment = { iteration: epoch.index, iterations: epochs }
        const draws = random.fork("loss", epoch.index, index)
        const report = await accumulate(policy, batch, loss, { moment, random: draws, imitation: true, signal })
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
    `The gradients of step ${step + 1} of the cloning are not finite: begin it anew with a lower optimizer.learningRate.`,
  )
}
