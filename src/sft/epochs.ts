import { readOptions } from "../options/read.ts"
import { runDate } from "../runs/date.ts"
import { accumulateGradients } from "../training/accumulate.ts"
import { checkModel } from "../training/check-setup.ts"
import { resolveLearningRate, sftLearningRate } from "../training/learning-rate.ts"
import { miniBatches } from "../training/rows.ts"
import { adamwAt } from "../training/schedule.ts"
import { rateKeys } from "../training/settle-rates.ts"
import { GigpoError } from "../util/errors.ts"
import { Random } from "../util/random.ts"
import { Epoch } from "./epoch.ts"
import { makeSftLoss } from "./loss.ts"
import { sftFields } from "./options.ts"
import { SftRun } from "./run.ts"
import { checkSftLoss, sftSequences } from "./sequences.ts"

import type { SftReport, SftSetup } from "./sft.ts"

/** Epochs of a fine-tuning run, with a report after each; see `sft`. */
export async function* fineTune<Task>(setup: SftSetup<Task>): AsyncGenerator<SftReport, void, undefined> {
  const { policy, tokenizer, environment: _, agent: __, normalize: ___, expert: ____, ...own } = setup
  const { run, signal, handleSignals: _____, onProgress, onExpert: ______, onWarning: _______, ...given } = own
  const options = readOptions("sft", given, sftFields)
  checkModel("sft", policy, tokenizer)
  const { seed, epochs, completionsPerUpdate, checkpointEvery } = options
  const { warmup = epochs / 20, ...rest } = options.optimizer
  const optimizer = {
    ...resolveLearningRate(rest, sftLearningRate(options), policy, run?.learningRates[rateKeys.policy]),
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
  const random = new Random(seed).derive("sft")
  const apart = await sftSequences(setup, options, loss, random)
  const items = apart.flat()
  const rows = items.flat()
  // A sequence may have several steps, and a pair several sequences. A batch has at least one item.
  const steps = rows.reduce((sum, { segments }) => sum + segments.length, 0)
  const perEpoch = Math.min(Math.ceil(steps / completionsPerUpdate), items.length)
  const total = epochs * perEpoch
  epoch.over(rows, perEpoch)
  await cloning?.begin()
  let step = run?.iteration ?? 0
  let whole = true // the weights are those after `step` steps
  try {
    while (epoch.index < epochs) {
      const done = step - epoch.index * perEpoch
      const drawn = miniBatches(apart, { parts: perEpoch }, random.derive("epoch", epoch.index), () => 1)
      for (const [index, together] of drawn.entries()) {
        if (index < done) continue
        const batch = together.flat()
        const started = performance.now()
        const progress = { iteration: epoch.index, iterations: epochs }
        const draws = random.derive("loss", epoch.index, index)
        const report = await accumulateGradients(policy, batch, loss, {
          progress,
          random: draws,
          imitation: true,
          signal,
        })
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
      const report = { epoch: epoch.index + 1, epochs, loss: mean, completions: steps, seconds, metrics }
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
